"""A typed pass over partitions has the bits of one machine, whoever owns which row."""

import doctest
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.connector.mapping import ColumnMapping, GraphMapping, NodeMapping, RelationMapping
from ringfence.connector.mirror import create_raw, save
from ringfence.jobs.engines.ownership_file import ownership_folder, write_owners
from ringfence.jobs.engines.typed_pass import EncodedColumns
from ringfence.jobs.inference import close_tables, inference_graph, outputs_at
from ringfence.models.inference.partition import typed_part
from tests.jobs.engines.hosts import HereEngine, HereWorkers
from tests.jobs.inference.test_relation_columns import bring
from tests.jobs.inference.test_typed_pass import IDENTITY, model_of, take_in
from tests.related_worlds import RelatedWorld, related_worlds
from tests.typed_worlds import World, steps, worlds


class Both:
    """One typed mirror, computed by one machine and by partitions whose processes come and go."""

    def __init__(self, folder, world, layers, parts):
        self.folder, self.world, self.parts = folder, world, parts
        mapping = world.mapping
        self.typed = create_raw(
            folder / "mirror", IDENTITY, mapping.column_names, mapping.relation_columns
        )
        self.change(40, 5, 0, 0, known=True)
        self.model = model_of(world, self.typed, layers)
        self.rng = np.random.default_rng(1)
        self.restart()

    def change(self, *step, **how):
        take = bring if isinstance(self.world, RelatedWorld) else take_in
        take(self.typed, self.world, self.world.step(*step, **how))

    def restart(self, dies_at=0):
        place = ownership_folder(self.folder / "many" / "t")
        self.engine = HereEngine(HereWorkers(place, self.parts, dies_at))

    def shuffle(self):
        """Let every row have another owner."""
        base = self.typed
        owners = self.rng.integers(0, self.parts, base.size).astype(np.int16)
        write_owners(self.folder / "many" / "t", base.epoch, self.parts, owners)

    def differing(self, wanted=None):
        """How many numbers differ, and what the pass over partitions says of itself."""
        base, mapping = self.typed, self.world.mapping
        graph = inference_graph(base, mapping)
        rows = self.typed.rows_of_label(0)[::2] if wanted is None else wanted
        one = outputs_at(self.folder / "one" / "t", self.model, base, mapping, graph, rows)
        many = self.engine.outputs_at(
            self.folder / "many" / "t", self.model, base, mapping, graph, rows
        )
        return int((one.logits.view("i4") != many.logits.view("i4")).sum()), many.sentence

    def finish(self):
        base = self.typed
        save(self.typed, self.folder / "mirror")
        close_tables(self.folder / "one" / "t", self.model, base)
        self.engine.close_tables(self.folder / "many" / "t", self.model, base)


@settings(max_examples=6, deadline=None)
@given(
    world=worlds(), history=steps, layers=st.sampled_from([1, 2, 3]), parts=st.sampled_from([1, 3])
)
def test_any_history_of_any_schema_has_the_bits_of_one_machine(
    world, history, layers, parts, tmp_path_factory
):
    both = Both(tmp_path_factory.mktemp("world"), world, layers, parts)
    both.shuffle()
    for number, step in enumerate(history):
        both.change(*step)
        assert both.differing()[0] == 0
        both.finish()
        if number % 2:
            both.restart()


@settings(max_examples=6, deadline=None)
@given(related=related_worlds(), history=steps, parts=st.sampled_from([1, 3]))
def test_columns_of_relationships_have_the_bits_of_one_machine(
    related, history, parts, tmp_path_factory
):
    both = Both(tmp_path_factory.mktemp("world"), related, 2, parts)
    both.shuffle()
    for step in history:
        both.change(*step)
        assert both.differing()[0] == 0
        both.finish()


def flights(folder, parts=2):
    """Flights that hear airports, and the other way round: the shape of a real typed graph."""
    columns = (ColumnMapping("x", "vector"), ColumnMapping("kind", "category"))
    nodes = (NodeMapping("flight", "k", columns), NodeMapping("airport", "k", columns[:1]))
    relations = (RelationMapping(0, "from", 1), RelationMapping(0, "to", 1))
    mapping = GraphMapping(nodes, relations, "the class", "zoned")
    world = World(mapping, [{"x": "vector", "kind": "category"}, {"x": "vector"}], random.Random(5))
    return Both(folder, world, 2, parts)


def test_later_runs_of_other_processes_send_what_changed(tmp_path):
    both = flights(tmp_path)
    both.change(60, 90, 0, 0)
    differing, sentence = both.differing()
    assert differing == 0
    assert "2 of 2 partitions were filled" in sentence
    both.finish()
    both.restart()
    both.change(5, 4, 1, 2)
    differing, sentence = both.differing()
    assert differing == 0
    assert "only what changed was sent" in sentence
    both.finish()
    both.shuffle()
    both.restart()
    differing, sentence = both.differing()
    assert differing == 0
    assert "2 of 2 partitions were filled" in sentence  # another division


@pytest.mark.parametrize("call", range(1, 22, 3))
def test_a_worker_that_dies_at_any_call_costs_a_second_try_and_no_bit(tmp_path, call):
    both = flights(tmp_path)
    both.change(60, 90, 0, 0)
    both.restart(dies_at=call)
    differing, sentence = both.differing()
    assert differing == 0
    assert "a worker died" in sentence


def test_columns_that_changed_unseen_would_show(tmp_path, monkeypatch):
    """The negative control: without the marks of changed columns old values are used."""
    both = flights(tmp_path)
    both.change(60, 90, 0, 0)
    assert both.differing(both.typed.rows_of_label(0))[0] == 0
    both.finish()
    monkeypatch.setattr(EncodedColumns, "written_since", lambda self, _version: np.empty(0, "i8"))
    both.change(0, 0, 0, 20)
    assert both.differing(both.typed.rows_of_label(0))[0] > 0


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(typed_part).failed == 0
