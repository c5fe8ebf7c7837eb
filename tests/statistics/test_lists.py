"""Lists in simulated lives: the promised false share, and what breaks without each part."""

import numpy as np
import pytest

from ringfence.models.conformal.strata import one_stratum
from ringfence.models.selection.per_run import PER_RUN
from ringfence.models.selection.per_stream import CONFIDENCE, PER_STREAM
from ringfence.models.selection.references import (
    References,
    ScoredNodes,
    fair_weights,
    rank_among,
)

pytestmark = pytest.mark.statistics

LIVES = 3_000
WRONG = np.array([True, False])  # class 0 is wrong on the list, class 1 right


def draw(rng, n, rare, distance):
    right = rng.random(n) < rare
    return right.astype(int), rng.normal(size=n) + distance * right


def refer(classes, scores, rng, fair=None):
    weight = fair_weights(classes, WRONG, fair)
    return References(ScoredNodes(scores, rng.random(len(scores))), WRONG[classes], weight)


def false_shares(select, seed, rare=0.06, distance=3.0, n=1000, m=100):
    """The false share of a run in each life (0 for an empty list), and false and listed nodes."""
    rng, shares, false, total = np.random.default_rng(seed), [], 0, 0
    for _ in range(LIVES):
        classes, scores = draw(rng, n, rare, distance)
        new_classes, new = draw(rng, m, rare, distance)
        on = select(rng, classes, scores, new)
        wrong = int((on & WRONG[new_classes]).sum())
        shares.append(wrong / max(int(on.sum()), 1))
        false, total = false + wrong, total + int(on.sum())
    return np.array(shares), false / max(total, 1)


def per_run(share):
    def select(rng, classes, scores, new):
        references = refer(classes, scores, rng)
        nodes = ScoredNodes(new, rng.random(len(new)))
        found = rank_among(references, nodes, one_stratum(len(scores), len(new)))
        return PER_RUN.shares(found, len(new), share) <= share

    return select


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
def test_the_mean_false_share_of_runs_is_at_most_the_promised_one(share):
    shares, _ = false_shares(per_run(share), seed=1)
    assert shares.mean() <= share + 3 * shares.std() / np.sqrt(LIVES)


def test_pooled_over_runs_the_share_is_larger_than_promised_per_run():
    shares, pooled = false_shares(per_run(0.2), seed=2, distance=2.0, m=20)
    assert shares.mean() <= 0.2 + 3 * shares.std() / np.sqrt(LIVES)
    assert pooled > 0.35  # what people read; the promise of a run says nothing about it


def test_red_control_a_threshold_on_the_references_false_share_breaks_the_promise():
    """The lowest score above which at most a fifth of the references are wrong, taken as it is."""

    def naive(_rng, classes, scores, new):
        order = np.argsort(-scores)
        share = np.cumsum(WRONG[classes][order]) / np.arange(1, len(order) + 1)
        good = np.flatnonzero(share <= 0.2)
        limit = scores[order[good[-1]]] if len(good) else np.inf
        return new >= limit

    _, pooled = false_shares(naive, seed=3, distance=2.0, n=300)
    assert pooled > 0.25


def chosen_by_class(weighted):
    """References of which a rare class gives five times as many as its share."""

    def select(rng, classes, scores, new):
        kept = (classes == 1) | (rng.random(len(classes)) < 0.2)
        fair = np.bincount(classes, minlength=2).astype(float) if weighted else None
        references = refer(classes[kept], scores[kept], rng, fair)
        nodes = ScoredNodes(new, rng.random(len(new)))
        found = rank_among(references, nodes, one_stratum(int(kept.sum()), len(new)))
        return PER_RUN.shares(found, len(new), 0.2) <= 0.2

    return select


def test_references_chosen_by_class_keep_the_promise_with_weights_and_break_it_without():
    shares, _ = false_shares(chosen_by_class(weighted=True), seed=4, rare=0.2)
    assert shares.mean() <= 0.2 + 3 * shares.std() / np.sqrt(LIVES)
    unweighted, _ = false_shares(chosen_by_class(weighted=False), seed=4, rare=0.2)
    assert unweighted.mean() > 0.25


@pytest.mark.parametrize(("rare", "distance"), [(0.06, 3.0), (0.2, 2.0), (0.06, 2.0)])
def test_of_calibrations_few_list_more_wrong_nodes_in_the_long_run_than_promised(rare, distance):
    rng, broken = np.random.default_rng(5), 0
    new_classes, new = draw(rng, 100_000, rare, distance)
    order = np.argsort(-new)
    share_above = np.cumsum(WRONG[new_classes][order]) / np.arange(1, len(order) + 1)
    grid = ScoredNodes(new[order[::100]], np.zeros(len(order[::100])))
    for _ in range(LIVES):
        classes, scores = draw(rng, 1000, rare, distance)
        found = rank_among(refer(classes, scores, rng), grid, one_stratum(1000, len(grid.score)))
        on = PER_STREAM.shares(found, len(grid.score), 0.2) <= 0.2
        broken += bool(on.any()) and share_above[::100][np.flatnonzero(on)[-1]] > 0.2
    assert broken / LIVES <= 1 - CONFIDENCE


THREE_WRONG, SHARES_OF_THREE = np.array([True, True, False]), np.array([0.84, 0.10, 0.06])


def three_classes(rng, n, shares):
    classes = rng.choice(3, size=n, p=shares)
    return classes, rng.normal(size=n) + np.array([0.0, 1.2, 2.5])[classes]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
def test_several_wrong_classes_of_a_calibration_by_class_keep_the_promise(share):
    """References with three and five times as many nodes of the rare classes, weighted."""
    rng, shares = np.random.default_rng(1), []
    taken = SHARES_OF_THREE * (1, 3, 5)
    for _ in range(LIVES):
        classes, scores = three_classes(rng, 1000, taken / taken.sum())
        new_classes, new = three_classes(rng, 100, SHARES_OF_THREE)
        weight = fair_weights(classes, THREE_WRONG, SHARES_OF_THREE * 10_000)
        nodes = ScoredNodes(scores, rng.random(1000))
        references = References(nodes, THREE_WRONG[classes], weight)
        arriving = ScoredNodes(new, rng.random(100))
        found = rank_among(references, arriving, one_stratum(1000, 100))
        on = PER_RUN.shares(found, 100, share) <= share
        shares.append((on & THREE_WRONG[new_classes]).sum() / max(on.sum(), 1))
    assert np.mean(shares) <= share + 3 * np.std(shares) / np.sqrt(LIVES)
    assert np.mean(shares) > 0.3 * share  # the bound says something
