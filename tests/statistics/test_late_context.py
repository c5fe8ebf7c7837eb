"""Context that is linked only after a node was evaluated: cut, or waited for, the promise holds.

Cases belong to shops, and an inquiry that tells much of the class is opened about a case after its
evaluation. Calibration nodes have theirs by then, newcomers don't. Typed SAGE is trained on the
typed graph; scores and sets come from the functions that scoring uses.
"""

import numpy as np
import pytest
import torch

from ringfence.models.conformal.evaluate import NodeDegrees, NodeScores, Promise, evaluate
from ringfence.models.inference.several_labels import forward_typed
from ringfence.models.inference.several_labels.plan import plan_typed
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.rules.node_ex import NODE_EX
from ringfence.models.schema import Relation, TypedSchema
from ringfence.models.scores import softmax64, tps
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train
from ringfence.models.training.typed_data import select_typed
from tests.models.inference.several_labels.histories import History

pytestmark = pytest.mark.statistics
CLASSES, SHOPS, PART, ALPHA = 4, 20, 300, 0.1
TRAIN, VALIDATION, CALIBRATION = np.split(np.arange(3 * PART), [PART * 2 // 3, PART, 2 * PART])[:3]
DUE = np.arange(2 * PART, 3 * PART)
REPETITIONS = 12


def schema(cut):
    return TypedSchema(
        ("Case", "Shop", "Inquiry"), (Relation(0, "AT", 1), Relation(2, "ABOUT", 0, cut=cut))
    )


def run(seed, cut, waited):
    """Coverage and mean set size of newcomers, who have their inquiry only where they waited."""
    rng = np.random.default_rng(seed)
    n, cases = 2 * 3 * PART + SHOPS, np.arange(3 * PART)
    y = rng.integers(0, CLASSES, len(cases))
    world = History(schema(cut), seed)
    world.labels = np.repeat([0, 1, 2], [len(cases), SHOPS, len(cases)])
    world.features = [
        (rng.normal(size=(len(cases), CLASSES)) + 0.9 * np.eye(CLASSES)[y]).astype(np.float32),
        rng.normal(size=(SHOPS, 2)).astype(np.float32),
        (rng.normal(size=(len(cases), CLASSES)) + 1.8 * np.eye(CLASSES)[y]).astype(np.float32),
    ]
    world.widths = [one.shape[1] for one in world.features]
    shops, inquiries = len(cases) + rng.integers(0, SHOPS, len(cases)), len(cases) + SHOPS + cases
    linked = cases if waited else np.setdiff1d(cases, DUE)
    everyone = {(int(a), int(b), 0) for a, b in zip(cases, shops, strict=True)}
    world.edges = everyone | {(int(inquiries[at]), int(at), 1) for at in linked}
    learned = np.concatenate([TRAIN, VALIDATION])
    rows = [learned, len(cases) + np.arange(SHOPS), inquiries[learned]]
    columns = [world.features[0][learned], world.features[1], world.features[2][learned]]
    edges = np.array(sorted(world.edges), np.int64).T
    data = select_typed(world.schema, columns, edges, rows, n)
    network = build_typed("typed_sage", world.schema, world.widths, CLASSES, hidden=16, seed=seed)
    places = torch.arange(len(learned))
    targets = TrainingTargets(
        torch.from_numpy(y[learned]), places[: len(TRAIN)], places[len(TRAIN) :]
    )
    options = TrainingOptions(seed=seed, max_epochs=80, patience=20)
    trained = train(network, data, targets, options)
    weights = {name: one.numpy() for name, one in trained.state.items()}
    plan = plan_typed(world.schema, weights)
    wanted = np.concatenate([CALIBRATION, DUE])
    logits = forward_typed(plan, world.graph(), world.features, wanted).logits
    scores = np.asarray(tps(softmax64(logits)))
    known = scores[np.arange(PART), y[CALIBRATION]]
    ones = np.ones(PART, np.int64)
    sets = evaluate(
        NodeScores(known, scores[PART:], known), NodeDegrees(ones, ones, np.array([0, 2 * PART])),
        Promise((ALPHA,), NODE_EX),
    ).sets[0]  # fmt: skip
    return sets[np.arange(PART), y[DUE]].mean(), sets.sum(axis=1).mean()


def spread():
    """Standard deviation of the mean coverage over all repetitions, by the law of coverage."""
    variance = ALPHA * (1 - ALPHA) * (1 / PART + 1 / (PART + 2))
    return float(np.sqrt(variance / REPETITIONS))


@pytest.mark.parametrize(
    ("cut", "waited"), [(True, False), (False, True)], ids=["cut", "evaluated after an age"]
)
def test_both_remedies_keep_coverage(cut, waited):
    covered = np.mean([run(seed, cut, waited)[0] for seed in range(REPETITIONS)])
    assert abs(covered - (1 - ALPHA)) < 3.5 * spread()


def test_without_a_remedy_coverage_is_not_what_is_promised():
    """The control: the same graphs, nothing cut and nobody waited for."""
    left = np.array([run(seed, cut=False, waited=False) for seed in range(REPETITIONS)]).mean(
        axis=0
    )
    cut = np.array([run(seed, cut=True, waited=False) for seed in range(REPETITIONS)]).mean(axis=0)
    assert abs(left[0] - (1 - ALPHA)) > 5 * spread()
    assert abs(cut[0] - (1 - ALPHA)) < 3.5 * spread()
