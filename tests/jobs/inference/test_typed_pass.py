"""Random typed graphs from raw values to outputs: what is kept between runs changes no bit."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.connector.keys import encode_key
from ringfence.connector.mapping import (
    ColumnMapping,
    GraphMapping,
    NodeMapping,
    RelationMapping,
)
from ringfence.connector.mirror import (
    RawBlock,
    RelationshipBlock,
    context_key,
    create_raw,
    load,
    save,
)
from ringfence.connector.neo4j.read.values import plain_column
from ringfence.jobs.inference import close_tables, inference_graph, outputs_at
from ringfence.jobs.inference.typed_pass import EncodedRows
from ringfence.jobs.project.columns.column_encoders import schema_of
from ringfence.jobs.project.columns.fit import fit_encoders
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import Scaling
from ringfence.jobs.scoring.shift import columns_to_compare, compare_with_calibration
from ringfence.models.conformal.evaluate import NodeDegrees
from ringfence.models.conformal.strata import Stratum
from ringfence.models.inference.several_labels import layer_cache
from ringfence.models.networks.typed_factory import build_typed
from tests.typed_worlds import CLASSES, Change, World, steps, worlds

IDENTITY = "world"
NOTHING = np.empty(0, np.float32)


@pytest.fixture(autouse=True)
def _small_hubs(monkeypatch):
    """Keep the sums of nearly all context nodes: random graphs are small."""
    monkeypatch.setattr(layer_cache, "MIN_ENTRIES_TO_CACHE", 2)


def block(world, label, keys):
    """Nodes of a label as a read brings them."""
    rows = [world.nodes[label, key] for key in keys]
    columns = [plain_column([row[name] for row in rows]) for name in world.kinds[label]]
    classes = [world.classes.get(key) if label == 0 else None for key in keys]
    typed = [context_key(label, encode_key(key)) for key in keys]
    return RawBlock(label, typed, columns, classes, np.zeros(len(keys), np.int64))


def rows_of(typed, nodes):
    return typed.find([context_key(label, encode_key(key)) for label, key in nodes])


def ends_of(typed, world, relations):
    ends = [
        [*rows_of(typed, [(one.source, a), (one.target, b)]).tolist(), at]
        for at, a, b in relations
        for one in [world.mapping.relations[at]]
    ]
    return np.array(ends, np.int64).reshape(-1, 3).T


def take_in(typed, world, change):
    """Bring a change to the mirror, as the reader does."""
    typed.advance()
    if change.parted:
        there = ends_of(typed, world, change.parted)
        typed.remove_relationships(there)
    if change.removed:
        typed.remove_nodes(rows_of(typed, change.removed))
    for label in range(len(world.kinds)):
        typed.update_nodes(block(world, label, [k for at, k in change.altered if at == label]))
        typed.add_nodes([block(world, label, [k for at, k in change.added if at == label])])
    for at, a, b in change.joined:
        one = world.mapping.relations[at]
        source, target = (
            context_key(one.source, encode_key(a)),
            context_key(one.target, encode_key(b)),
        )
        typed.add_block(RelationshipBlock(at, [source], [target]))
    typed.add_relationships([])


def model_of(world, typed, layers):
    """An untrained network with encoders fitted on half of the classified nodes, from its files."""
    rows = typed.rows_of_label(0)
    encoders = fit_encoders(typed, world.mapping, rows[::2])
    schema = schema_of(world.mapping)
    options = {"hidden": 5, "layers": layers, "degrees": layers == 1}
    network = build_typed("typed_sage", schema, encoders.widths, 3, seed=1, **options)
    weights = {name: one.numpy() for name, one in network.state_dict().items()}
    facts = json.loads(json.dumps({"schema": schema.to_json(), **encoders.facts()}))
    manifest = {"network": "typed_sage", "classes": CLASSES[:3], "options": options, "typed": facts}
    return SavedModel(
        "v1", {**weights, **encoders.arrays()}, Scaling(NOTHING, NOTHING), NOTHING, manifest
    )


def outputs(folder, model, world, typed, wanted):
    mapping = world.mapping
    graph = inference_graph(typed, mapping)
    return outputs_at(folder, model, typed, mapping, graph, wanted).logits


def replay(world, history, layers, place: Path, make_model=model_of):
    """Yield after every step the outputs with kept tables, from nothing, and of a new mirror."""
    typed = create_raw(place / "mirror", IDENTITY, world.mapping.column_names)
    take_in(typed, world, world.step(40, 5, 0, 0, known=True))
    model = make_model(world, typed, layers)
    for number, step in enumerate(history):
        take_in(typed, world, world.step(*step))
        wanted = typed.rows_of_label(0)[:: 1 + number % 2]
        kept = outputs(place / "kept" / "t", model, world, typed, wanted)
        save(typed, place / "mirror")
        close_tables(place / "kept" / "t", model, typed)
        anew = outputs(place / f"anew{number}" / "t", model, world, typed, wanted)
        fresh = create_raw(place / f"mirror{number}", IDENTITY, world.mapping.column_names)
        everyone = Change(list(world.nodes), joined=sorted(world.relations, key=repr))
        take_in(fresh, world, everyone)
        rows = fresh.find(typed.keys.take(wanted.tolist()))
        yield kept, anew, outputs(place / f"whole{number}" / "t", model, world, fresh, rows)
        if number % 2:
            del typed
            typed = load(place / "mirror", IDENTITY)
            assert typed is not None


@settings(max_examples=12, deadline=None)
@given(world=worlds(), history=steps, layers=st.sampled_from([1, 2, 3]))
def test_any_history_of_any_schema_gives_the_outputs_of_a_new_mirror(
    world, history, layers, tmp_path_factory
):
    for kept, anew, whole in replay(world, history, layers, tmp_path_factory.mktemp("world")):
        assert np.isfinite(kept).all()
        np.testing.assert_array_equal(kept, anew)
        np.testing.assert_allclose(kept, whole, rtol=1e-4, atol=1e-4)


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
    results = list(replay(world, [(3, 0, 0, 0), (3, 0, 0, 9)], 2, tmp_path))
    assert not np.array_equal(results[-1][0], results[-1][1])


def test_columns_are_compared_but_for_dates_and_those_that_differ_are_named(tmp_path):
    columns = {"amount": "number", "kind": "category", "opened": "date"}
    own = tuple(ColumnMapping(*one) for one in columns.items())
    mapping = GraphMapping((NodeMapping("a", "k", own),), (), "the class", "zoned")
    world = World(mapping, [columns], random.Random(3))
    typed = create_raw(tmp_path / "mirror", IDENTITY, mapping.column_names)
    take_in(typed, world, world.step(300, 0, 0, 0))
    model = model_of(world, typed, 1)
    for node in world.step(100, 0, 0, 0).added:
        world.nodes[node] |= {"kind": None, "opened": None}  # what is missing counts as a value
        typed.add_nodes([block(world, 0, [node[1]])])
    rows = typed.rows_of_label(0)
    degrees = NodeDegrees(np.ones(300, np.int64), np.ones(100, np.int64), np.array([0, 400]))
    everyone = [Stratum("", np.arange(300), np.arange(100))]
    columns_at = columns_to_compare(world.mapping, model, typed, rows)
    found = compare_with_calibration({}, degrees, everyone, 0, False, columns_at)
    assert [one["name"] for one in found["compared"]] == ["degree", "column amount", "column kind"]
    assert "column kind; it is not backed" in found["sentence"]
    assert found["compared"][2]["due"] is None  # a category has no median
