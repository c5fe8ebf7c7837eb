"""The labelled nodes by role: the holdout first, the same for every version, seen by none."""

from dataclasses import replace

import numpy as np
import pytest

from ringfence.connector.mirror import NodeBlock, RelationshipBlock, create
from ringfence.jobs.config.load import load_values
from ringfence.jobs.project.holdout import Holdout, configured_holdout, held_out_keys, holdout_of
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.training.fit import fit_network
from ringfence.jobs.training.split import (
    count_labelled,
    draw_holdout,
    same_validation,
    split_labelled,
    stop_by_latest,
)

WIDTH = 4
NAMES = ("mule", "normal", "shop")


def settings(tmp_path, **model):
    values = {
        "project": "accounts",
        "graph": {
            "label": "A", "key": "id", "features": "f", "class_property": "kind",
            "relationships": [{"type": "PAID"}],
        },
        "model": {"max_epochs": 3, **model},
    }  # fmt: skip
    return load_values(values, tmp_path / "ringfence.toml", {})


def grow(mirror, nodes, seed=0, first=0):
    """Add labelled nodes and as many relationships."""
    rng = np.random.default_rng(seed)
    keys = [f"i:{i}" for i in range(first, first + nodes)]
    features = rng.standard_normal((nodes, WIDTH), dtype=np.float32)
    classes = [NAMES[i] for i in rng.integers(0, 3, nodes)]
    mirror.advance()
    mirror.add_nodes([NodeBlock(keys, features, classes, np.arange(nodes), [])])
    ends = [[f"i:{i}" for i in side] for side in rng.integers(0, first + nodes, (2, nodes))]
    mirror.add_block(RelationshipBlock(0, *ends))
    mirror.add_relationships([])
    return mirror


@pytest.fixture
def mirror(tmp_path):
    return grow(create(tmp_path / "mirror", "graph", WIDTH), 1_000)


def keys_of(mirror, rows):
    return set(mirror.keys.take(rows.tolist()))


def test_the_holdout_is_drawn_first_and_the_other_roles_divide_the_rest(mirror, tmp_path):
    own = settings(tmp_path)
    drawn = draw_holdout(mirror, configured_holdout(own))
    assert 70 < len(drawn.rows) < 130
    split = split_labelled(mirror, own.model, holdout=drawn.rows)
    rows = np.concatenate(list(split.roles.values()))
    assert len(rows) == len(set(rows.tolist())) == 1_000
    assert set(split.holdout.tolist()) == set(drawn.rows.tolist())
    without = split_labelled(mirror, own.model)  # nobody moves between the other roles
    for role in ("train", "validation", "calibration"):
        before = set(without.roles[role].tolist()) - set(drawn.rows.tolist())
        assert set(split.roles[role].tolist()) == before
    assert len(without.holdout) == 0
    assert sum(count_labelled(mirror, drawn.rows).values()) == 1_000 - len(drawn.rows)


def test_it_is_the_same_for_every_seed_and_in_a_graph_that_grows(mirror, tmp_path):
    before = keys_of(mirror, draw_holdout(mirror, configured_holdout(settings(tmp_path))).rows)
    other = settings(tmp_path, seed=5)
    assert keys_of(mirror, draw_holdout(mirror, configured_holdout(other)).rows) == before
    wider = configured_holdout(settings(tmp_path, holdout=0.3))
    assert before < keys_of(mirror, draw_holdout(mirror, wider).rows)
    grow(mirror, 500, seed=1, first=1_000)
    after = keys_of(mirror, draw_holdout(mirror, configured_holdout(other)).rows)
    assert {key for key in after if int(key[2:]) < 1_000} == before
    assert len(after) > len(before)
    renamed = replace(configured_holdout(other), key="another project")
    assert keys_of(mirror, draw_holdout(mirror, renamed).rows) != after


@pytest.mark.parametrize(("share", "said"), [(0.1, "about 300 labelled nodes would do"), (0.0, "")])
def test_with_too_few_labels_a_version_goes_without_and_says_so(tmp_path, share, said):
    few = grow(create(tmp_path / "few", "graph", WIDTH), 150)
    drawn = draw_holdout(few, configured_holdout(settings(tmp_path, holdout=share)))
    assert drawn.holdout is None
    assert len(drawn.rows) == 0
    assert drawn.sentence.endswith(said)
    assert ("no holdout: 150 labelled nodes" in drawn.sentence) == bool(said)
    assert len(split_labelled(few, settings(tmp_path).model, holdout=drawn.rows).holdout) == 0


def weights(mirror, own, split):
    return fit_network(Workspace(own, own.mapping(), None, None), mirror, split, None).digest()


def test_no_class_and_no_column_of_the_holdout_reaches_the_weights(mirror, tmp_path):
    own = settings(tmp_path)
    drawn = draw_holdout(mirror, configured_holdout(own))
    split = split_labelled(mirror, own.model, holdout=drawn.rows)
    before = weights(mirror, own, split)

    def scrambled(rows):
        indices = split.class_indices.copy()
        indices[rows] = (indices[rows] + 1) % 3
        return replace(split, class_indices=indices)

    assert weights(mirror, own, scrambled(split.holdout)) == before
    leaked = replace(split, train=np.concatenate([split.train, split.holdout[:1]]))
    assert weights(mirror, own, leaked) != before  # the control: one leaked node is seen
    assert weights(mirror, own, scrambled(split.train[:1])) != before
    mirror.features[split.holdout] = 0.0
    assert weights(mirror, own, split) == before


def test_a_manifest_says_which_nodes_never_calibrate():
    keys = [f"i:{i}" for i in range(1_000)]
    manifest = {"holdout": Holdout("accounts", 0.1).as_manifest()}
    held_out = held_out_keys(manifest, keys)
    assert held_out == {
        key for key, inside in zip(keys, holdout_of(manifest).contains(keys), strict=True) if inside
    }
    assert 70 < len(held_out) < 130
    assert held_out_keys({}, keys) == held_out_keys({"holdout": None}, keys) == frozenset()


def test_the_latest_nodes_end_training_and_a_tie_keeps_those_that_were_drawn(mirror, tmp_path):
    split = split_labelled(mirror, settings(tmp_path).model)
    mirror.created_ns[:] = 7
    assert same_validation(stop_by_latest(mirror, split), split)  # no order, no change

    mirror.created_ns[:] = np.arange(1_000)
    late = stop_by_latest(mirror, split)
    assert mirror.created_ns[late.train].max() < mirror.created_ns[late.validation].min()
    assert (len(late.train), len(late.validation)) == (len(split.train), len(split.validation))
    for role in ("calibration", "holdout"):
        assert late.roles[role].tolist() == split.roles[role].tolist()

    mirror.created_ns[:] = 7
    mirror.created_ns[split.train[:10]] = 8  # ten came later: they replace ten that were drawn
    some = stop_by_latest(mirror, split)
    assert set(split.train[:10].tolist()) <= set(some.validation.tolist())
    assert len(set(some.validation.tolist()) & set(split.validation.tolist())) == (
        len(split.validation) - 10
    )


def test_a_class_that_came_late_is_learnt_all_the_same(mirror, tmp_path):
    split = split_labelled(mirror, settings(tmp_path).model)
    of_first = split.class_indices == 0
    mirror.created_ns[:] = np.where(of_first, 9, 7)
    of_late = split.train[of_first[split.train]][:5]
    few = replace(split, train=np.append(split.train[~of_first[split.train]], of_late))
    assert same_validation(stop_by_latest(mirror, few), few)
    mirror.created_ns[few.train[-1]] = 1  # the control: one of them came early
    assert not same_validation(stop_by_latest(mirror, few), few)
