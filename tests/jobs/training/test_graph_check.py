"""The fits with less of the graph: what they read, and what their intervals allow to say."""

import numpy as np
import pytest

from ringfence.connector.mirror import RelationshipBlock, create
from ringfence.jobs.lifecycle.graph_benefit import (
    NUMBERS,
    OWN_COLUMNS,
    PERMUTED,
    GraphBenefit,
    OtherFit,
)
from ringfence.jobs.project.network_inputs import permute_ends
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.fit import fit_network
from ringfence.jobs.training.graph_check import change_inputs, check_graph_benefit
from ringfence.jobs.training.network_family import family_of
from ringfence.jobs.training.split import split_labelled
from tests.jobs.training.test_split import grow, settings


def benefit(own, numbers, permuted, log_loss=0.5, accuracy=0.7):
    others = tuple(
        OtherFit(name, log_loss + (low + high) / 2, 0.6, (low + high) / 2, low, high)
        for name, (low, high) in zip((OWN_COLUMNS, NUMBERS, PERMUTED), (own, numbers, permuted),
                                     strict=True)
    )  # fmt: skip
    return GraphBenefit(100, log_loss, accuracy, others, 3, 1.0)


@pytest.mark.parametrize(
    ("own", "numbers", "permuted", "verdict"),
    [
        ((0.1, 0.2), (0.1, 0.2), (0.1, 0.2), "help"),
        ((0.1, 0.2), (-0.1, 0.2), (0.1, 0.2), "numbers"),
        ((0.1, 0.2), (0.1, 0.2), (-0.1, 0.2), "numbers"),
        ((-0.1, 0.2), (-0.1, 0.2), (0.1, 0.2), "nothing"),
        ((-0.2, -0.1), (-0.2, 0.1), (-0.1, 0.1), "harm"),
    ],
)
def test_what_the_intervals_allow_to_say(own, numbers, permuted, verdict):
    found = benefit(own, numbers, permuted)
    assert found.verdict == verdict
    assert GraphBenefit.from_manifest({"graph_check": found.as_json()}) == found
    assert GraphBenefit.from_manifest({}) is None


def test_a_leak_is_suspected_far_above_both_baselines_alone():
    far = (0.8, 1.0)
    assert benefit(far, far, far, 0.1, 0.97).is_suspicious
    assert not benefit(far, (0.05, 0.1), far, 0.1, 0.97).is_suspicious  # numbers alone do as well
    assert not benefit(far, far, far, 0.6, 0.7).is_suspicious
    assert any(line.startswith("CHECK") for line in benefit(far, far, far, 0.1, 0.97).sentences())
    hears_none = benefit((-0.1, 0.1), (-0.3, -0.2), (-0.1, 0.1))
    assert any("degrees = true" in line for line in hears_none.sentences())


def test_permuted_ends_keep_every_degree_by_type():
    rng = np.random.default_rng(1)
    edges = np.stack([rng.integers(0, 30, 400), rng.integers(30, 60, 400), rng.integers(0, 3, 400)])
    permuted = permute_ends(edges, 5)
    assert not np.array_equal(edges, permuted)
    for kind in range(3):
        before, after = edges[:, edges[2] == kind], permuted[:, permuted[2] == kind]
        for end in (0, 1):
            assert np.array_equal(np.bincount(before[end]), np.bincount(after[end]))


@pytest.fixture
def mirror(tmp_path):
    """Classes in three blocks of nodes that are connected inside; features are noise."""
    made = grow(create(tmp_path / "mirror", "graph", 4), 900)
    rng, classes = np.random.default_rng(2), np.asarray(made.classes)
    ends = []
    for class_ in range(3):
        rows = np.flatnonzero(classes == class_)
        ends.append(rng.choice(rows, (2, 4 * len(rows))))
    source, target = np.concatenate(ends, axis=1)
    keys = [[f"i:{row}" for row in side] for side in (source, target)]
    made.advance()
    made.add_block(RelationshipBlock(0, *keys))
    made.add_relationships([])
    made.features[:, 0] = classes + rng.normal(size=900)  # a weak hint, stronger in the mean
    return made


def test_one_label_blocks_help_and_a_feature_that_says_all_makes_the_graph_useless(
    mirror, tmp_path
):
    own = settings(tmp_path, network="SAGE", max_epochs=60, learning_rate=0.02, hidden=16)
    split = split_labelled(mirror, own.model)
    workspace, said = Workspace(own, own.mapping(), None, None), []

    def check():
        fitted = fit_network(workspace, mirror, split, None)
        return check_graph_benefit(
            mirror.size, split, fitted, None, lambda what, at, _of: said.append((what, at))
        )

    assert check().verdict == "help"
    assert said == [("fits with less of the graph", at) for at in range(3)]
    mirror.features[:, 0] = 5 * np.asarray(mirror.classes)
    assert check().verdict in ("nothing", "harm")


def test_fits_read_what_they_say(mirror, tmp_path):
    own = settings(tmp_path, network="SAGE")
    split = split_labelled(mirror, own.model)
    inputs = family_of(own.mapping(), mirror).fit_inputs(own.model, split.train)
    rows = np.concatenate([split.train, split.validation])
    real = inputs.select(rows)
    alone, numbers, permuted = (
        change_inputs(name, inputs, split, mirror.size).select(rows)
        for name in (OWN_COLUMNS, NUMBERS, PERMUTED)
    )
    assert alone.edge_count == numbers.edge_count == 0
    assert np.array_equal(alone.x.numpy(), real.x.numpy())
    degrees = np.bincount(real.edge_index.numpy()[1], minlength=len(rows))
    column = numbers.x.numpy()[:, -1]
    assert np.corrcoef(np.log1p(degrees), column)[0, 1] > 0.999
    assert abs(permuted.edge_count - real.edge_count) < 0.1 * real.edge_count  # parallels merge
    assert not np.array_equal(permuted.edge_index.numpy(), real.edge_index.numpy())
