"""Random schemas with properties of relationships: what is kept changes no bit of any output."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.connector.mapping import ColumnMapping, GraphMapping, NodeMapping, RelationMapping
from ringfence.connector.mirror import compact, create_raw, load, save
from ringfence.jobs.inference import close_tables
from ringfence.jobs.inference.typed_pass import EncodedRows
from ringfence.jobs.project.columns.fit import fit_encoders
from ringfence.jobs.project.columns.relation_means import RelationMeans
from ringfence.models.inference.several_labels import layer_cache
from ringfence.models.trees.columns import CountRule
from tests.jobs.inference.test_tree_pass import trees_of
from tests.jobs.inference.test_typed_pass import IDENTITY, model_of, outputs, take_in
from tests.related_worlds import RelatedWorld, related_worlds, take_in_related
from tests.typed_worlds import World, steps


@pytest.fixture(autouse=True)
def _small_hubs(monkeypatch):
    monkeypatch.setattr(layer_cache, "MIN_ENTRIES_TO_CACHE", 2)


def bring(typed, related, change):
    take_in(typed, related.world, change.world)
    take_in_related(typed, related, change)


def empty(place, related):
    mapping = related.mapping
    return create_raw(place, IDENTITY, mapping.column_names, mapping.relation_columns)


def replay(related, history, layers, place, make_model):
    """Yield after every step the outputs with what is kept, from nothing, and of a new mirror."""
    typed = empty(place / "mirror", related)
    bring(typed, related, related.step(40, 9, 0, 0, known=True))
    model = make_model(related.world, typed, layers)
    for number, step in enumerate(history):
        change = related.step(*step)
        bring(typed, related, change)
        wanted = typed.rows_of_label(0)[:: 1 + number % 2]
        kept = outputs(place / "kept" / "t", model, related.world, typed, wanted)
        save(typed, place / "mirror")
        close_tables(place / "kept" / "t", model, typed)
        anew = outputs(place / f"anew{number}" / "t", model, related.world, typed, wanted)
        fresh = empty(place / f"mirror{number}", related)
        bring(fresh, related, related.everything(dataclasses.replace(
            change.world, altered=[], removed=[], parted=[])))  # fmt: skip
        rows = fresh.find(typed.keys.take(wanted.tolist()))
        check_tables(typed, fresh, related)
        yield kept, anew, outputs(place / f"whole{number}" / "t", model, related.world, fresh, rows)
        if number % 2:
            typed = load_again(typed, place)


def load_again(typed, place):
    del typed
    loaded = load(place / "mirror", IDENTITY)
    assert loaded is not None
    return loaded


def check_tables(typed, fresh, related):
    """Both mirrors have what the world has, and each pair of ends once in the adjacency."""
    for mirror in (typed, fresh):
        for at, table in mirror.related.items():
            mine = [n for n, record in related.records.items() if record[0] == at]
            places = np.flatnonzero(table.live)
            assert sorted(table.numbers.array[places].tolist()) == sorted(mine)
            ends = set(zip(*(part.tolist() for part in table.ends(places)), strict=True))
            edges = {(a, b) for a, b, kind in mirror.edges.T.tolist() if kind == at}
            assert ends == edges


@settings(max_examples=15, deadline=None)
@given(related=related_worlds(), history=steps, layers=st.sampled_from([1, 2, 3]))
def test_any_history_of_any_schema_gives_a_network_the_outputs_of_a_new_mirror(
    related, history, layers, tmp_path_factory
):
    place = tmp_path_factory.mktemp("world")
    for kept, anew, whole in replay(related, history, layers, place, model_of):
        assert np.isfinite(kept).all()
        np.testing.assert_array_equal(kept, anew)
        np.testing.assert_allclose(kept, whole, rtol=1e-4, atol=1e-4)


@settings(max_examples=10, deadline=None)
@given(related=related_worlds(), history=steps)
def test_any_history_of_any_schema_gives_trees_the_outputs_of_a_new_mirror(
    related, history, tmp_path_factory
):
    place = tmp_path_factory.mktemp("world")
    for kept, anew, whole in replay(related, history, 1, place, trees_of):
        np.testing.assert_array_equal(kept, anew)
        assert np.isclose(kept, whole, rtol=1e-6).all(axis=1).mean() > 0.9


def transfers(seed=5, **columns):
    """Accounts with transfers between them, and no columns of their own."""
    paid = RelationMapping(
        0, "PAID", 0, columns=tuple(ColumnMapping(*one) for one in columns.items())
    )
    mapping = GraphMapping((NodeMapping("Account", "k"),), (paid,), "the class", "zoned")
    return RelatedWorld(World(mapping, [{}], random.Random(seed)), {0: columns})


def test_means_that_miss_a_change_are_seen(tmp_path, monkeypatch):
    """The control: with sums that are kept as they were the outputs are those of old values."""
    whole = EncodedRows._update_means

    def forget(encoded, label, means, known, version):
        before = means[:known].copy()
        touched = whole(encoded, label, means, known, version)
        means[:known] = before if version >= 0 else means[:known]
        return touched

    monkeypatch.setattr(EncodedRows, "_update_means", forget)
    history = [(3, 4, 0, 0), (3, 4, 1, 0)]
    results = list(replay(transfers(x="number"), history, 2, tmp_path, model_of))
    assert not np.array_equal(results[-1][0], results[-1][1])


def test_means_are_those_of_every_relationship_parallels_and_loops_included(tmp_path):
    related = transfers(x="number")
    typed = empty(tmp_path, related)
    bring(typed, related, related.step(12, 12, 0, 0))
    encoders = fit_encoders(typed, related.mapping, typed.rows_of_label(0))
    rows = typed.rows_of_label(0)
    means = RelationMeans(typed, encoders.related)
    out = [[] for _ in rows]
    incoming = [[] for _ in rows]
    for number, (_, a, b, _) in related.records.items():
        place = int(np.flatnonzero(typed.related[0].numbers.array == number)[0])
        value = means.encode(0, np.array([place]))[0]
        out[keyed(typed, a)].append(value)
        incoming[keyed(typed, b)].append(value)
    expected = [
        np.concatenate([mean(values) for values in (ins, outs)])
        for ins, outs in zip(incoming, out, strict=True)
    ]
    np.testing.assert_allclose(means.at(0, rows), expected, atol=1e-6)
    counted = [[len(ins), len(outs)] for ins, outs in zip(incoming, out, strict=True)]
    np.testing.assert_array_equal(means.counts(0, rows, CountRule()), counted)
    assert any(a == b for _, a, b, _ in related.records.values())


def keyed(typed, key):
    from ringfence.connector.keys import encode_key

    return int(typed.find([encode_key(key)])[0])


def mean(values):
    return np.mean(values, axis=0) if values else np.zeros(3)


def test_a_compacted_mirror_gives_the_bits_that_it_had(tmp_path):
    related = transfers(x="number", y="category")
    typed = empty(tmp_path, related)
    bring(typed, related, related.step(30, 30, 0, 0))
    model = model_of(related.world, typed, 2)
    bring(typed, related, related.step(5, 5, 9, 0))
    rows = typed.rows_of_label(0)
    before = outputs(tmp_path / "a", model, related.world, typed, rows)
    fresh = compact(typed, tmp_path)
    assert fresh.related[0].dead == 0
    rows = fresh.rows_of_label(0)
    np.testing.assert_array_equal(
        before, outputs(tmp_path / "b", model, related.world, fresh, rows)
    )
