"""Conformal selection against its exact law, down to one reference node."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from ringfence.models.conformal.strata import one_stratum, strata_of_ids
from ringfence.models.selection.per_run import PER_RUN, list_p_values
from ringfence.models.selection.references import References, ScoredNodes, rank_among


def tails(known, wrong, new, ties=None, weight=None, strata=None):
    known, new = np.asarray(known, float), np.asarray(new, float)
    ties = np.zeros(len(known) + len(new)) if ties is None else np.asarray(ties, float)
    weight = np.ones(len(known)) if weight is None else weight
    references = References(
        ScoredNodes(known, ties[: len(known)]), np.asarray(wrong, bool), np.asarray(weight, float)
    )
    nodes = ScoredNodes(new, ties[len(known) :])
    return rank_among(references, nodes, strata or one_stratum(len(known), len(new)))


def listed(known, wrong, new, share, **more):
    shares = PER_RUN.shares(tails(known, wrong, new, **more), len(new), share)
    return shares <= share


def exact_false_share(references, new, share, p_wrong, select=listed):
    """The expected false share over all orders of the scores and all classes, as a fraction.

    Scores are independent of the classes, the hardest case: nothing distinguishes wrong nodes.
    """
    total, orders = Fraction(0), list(permutations(range(references + new)))
    for order, classes in product(orders, product((True, False), repeat=references + new)):
        chance = Fraction(1, len(orders))
        for is_wrong in classes:
            chance *= p_wrong if is_wrong else 1 - p_wrong
        scores, wrong = np.array(order), np.array(classes)
        on = select(scores[:references], wrong[:references], scores[references:], share)
        if on.any():
            total += chance * Fraction(int((on & wrong[references:]).sum()), int(on.sum()))
    return total


@pytest.mark.parametrize("p_wrong", [Fraction(1, 2), Fraction(1, 1)])
@pytest.mark.parametrize(("references", "new"), [(1, 1), (1, 2), (2, 2), (3, 1), (4, 1)])
@pytest.mark.parametrize("share", [0.34, 0.5])
def test_the_expected_false_share_is_at_most_the_promised_one(references, new, share, p_wrong):
    assert exact_false_share(references, new, share, p_wrong) <= Fraction(str(share))


def test_the_law_is_met_exactly_where_all_nodes_are_wrong():
    assert exact_false_share(4, 1, 0.2, Fraction(1, 1)) == Fraction(1, 5)


def test_a_p_value_without_the_node_itself_breaks_the_law():
    """Red control: the false share among references alone, which people take as a threshold."""

    def naive(known, wrong, new, share):
        above = np.array([(wrong & (known >= score)).sum() for score in new])
        every = np.array([max((known >= score).sum(), 1) for score in new])
        return above / every <= share

    assert exact_false_share(3, 1, 0.2, Fraction(4, 5), naive) > Fraction(1, 5)


def test_p_values_count_wrong_references_at_or_above():
    found = tails([0.9, 0.5, 0.1], [False, True, True], [0.95, 0.5, 0.2, 0.0])
    assert list_p_values(found, 4).tolist() == [1 / 4, 2 / 4, 2 / 4, 3 / 4]


def test_ties_are_ordered_by_the_nodes_own_numbers():
    found = tails([0.5, 0.5, 0.5], [True] * 3, [0.5, 0.5], ties=[0.1, 0.5, 0.9, 0.95, 0.3])
    assert list_p_values(found, 2).tolist() == [1 / 4, 3 / 4]


def test_with_all_scores_tied_the_law_still_holds_exactly():
    rng, wrong, reps = np.random.default_rng(3), np.ones(4, bool), 20_000
    hits = sum(listed(np.zeros(4), wrong, [0.0], 0.2, ties=rng.random(5))[0] for _ in range(reps))
    assert abs(hits / reps - 0.2) < 4 * np.sqrt(0.2 * 0.8 / reps)


def test_nodes_are_compared_inside_their_strata_and_nowhere_else():
    strata = strata_of_ids(np.array([0, 0, 1]), np.array([0, 1]), ("low", "high"))
    found = tails([0.9, 0.1, 0.9], [True, True, False], [0.5, 0.5], strata=strata)
    assert list_p_values(found, 3).tolist() == [2 / 3, 1 / 2, 1.0]


def test_a_larger_share_lists_all_that_a_smaller_one_lists():
    rng = np.random.default_rng(0)
    known, new = rng.normal(size=200), rng.normal(size=80)
    found = tails(known, rng.random(200) < 0.7, new)
    sizes = [(PER_RUN.shares(found, 80, share) <= share).sum() for share in (0.1, 0.3, 0.6, 0.9)]
    assert sizes == sorted(sizes)


def test_shares_are_those_of_the_step_up_procedure():
    rng = np.random.default_rng(1)
    known, wrong = rng.normal(size=99), rng.random(99) < 0.5
    known = known + 2 * ~wrong
    found = tails(known, wrong, rng.normal(size=40) + rng.integers(0, 2, 40) * 2)
    p = np.sort(list_p_values(found, 40))
    for share in (0.05, 0.2, 0.5):
        passing = np.flatnonzero(p <= share * np.arange(1, 41) / 40)
        expected = passing[-1] + 1 if len(passing) else 0
        assert (PER_RUN.shares(found, 40, share) <= share).sum() == expected
