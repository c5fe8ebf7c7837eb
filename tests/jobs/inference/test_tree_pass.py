"""Random typed graphs from raw values to the outputs of trees: what is kept changes no bit."""

import json
import random

import numpy as np
from hypothesis import given, settings

from ringfence.connector.mapping import ColumnMapping, GraphMapping, NodeMapping, RelationMapping
from ringfence.jobs.inference.typed_pass import EncodedRows
from ringfence.jobs.project.columns.column_encoders import schema_of
from ringfence.jobs.project.columns.fit import fit_encoders
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import Scaling
from ringfence.jobs.training.several_labels import mirror_columns
from ringfence.models.training.boosted_trees import TreeTable, grow_trees
from ringfence.models.training.loop import Recipe
from ringfence.models.trees.columns import tree_columns
from tests.jobs.inference.test_typed_pass import NOTHING, replay
from tests.typed_worlds import CLASSES, World, steps, worlds


def trees_of(world, typed, _layers):
    """Trees grown on random classes: every column may decide."""
    rows = typed.rows_of_label(0)
    encoders, schema = fit_encoders(typed, world.mapping, rows[::2]), schema_of(world.mapping)
    columns = tree_columns(mirror_columns(typed, world.mapping, schema, encoders), rows)
    many = np.repeat(columns, 8, axis=0)  # leaves have 20 rows or more
    y = np.repeat(np.random.default_rng(1).permutation(np.arange(len(rows)) % 3), 8)
    trees, _ = grow_trees(TreeTable(many, y, many, y, 3), Recipe(0, 0.3, 0.0, 12, 12, None))
    assert len(trees.value) > len(trees.first)  # they split
    facts = json.loads(json.dumps({"schema": schema.to_json(), **encoders.facts()}))
    manifest = {"network": "trees", "classes": CLASSES[:3], "options": {}, "typed": facts}
    arrays = {**trees.arrays(), **encoders.arrays()}
    return SavedModel("v1", arrays, Scaling(NOTHING, NOTHING), NOTHING, manifest)


@settings(max_examples=8, deadline=None)
@given(world=worlds(), history=steps)
def test_any_history_of_any_schema_gives_the_outputs_of_a_new_mirror(
    world, history, tmp_path_factory
):
    """A mirror that numbers nodes otherwise adds up means otherwise: a leaf may differ by that."""
    place = tmp_path_factory.mktemp("world")
    for kept, anew, whole in replay(world, history, 1, place, trees_of):
        assert np.isfinite(kept).all()
        np.testing.assert_array_equal(kept, anew)
        equal = np.isclose(kept, whole, rtol=1e-6).all(axis=1)
        assert equal.mean() > 0.9


def test_encoded_rows_that_miss_a_change_are_seen(tmp_path, monkeypatch):
    """The control: without the mark of changed columns the outputs are those of old values."""
    nodes = (NodeMapping("a", "k", (ColumnMapping("x", "vector"),)), NodeMapping("b", "k"))
    mapping = GraphMapping(nodes, (RelationMapping(0, "r", 1),), "the class", "zoned")
    world = World(mapping, [{"x": "vector"}, {}], random.Random(5))
    whole = EncodedRows._update

    def forget(encoded, label, cached):
        typed = encoded.mirror
        rows = [] if cached is None else [len(cached.arrays[f"encoded.{at}"]) for at in range(2)]
        typed.revised = np.where(np.arange(typed.size) < sum(rows), -1, typed.revised)
        return whole(encoded, label, cached)

    monkeypatch.setattr(EncodedRows, "_update", forget)
    results = list(replay(world, [(3, 0, 0, 0), (3, 0, 0, 9)], 1, tmp_path, trees_of))
    assert not np.array_equal(results[-1][0], results[-1][1])
