"""Typed inference: the network's own logits, and the same bits however a graph came about."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.inference import leave_out_types, neighbour_counts
from ringfence.models.inference.graph import find_late_entries
from ringfence.models.inference.several_labels import (
    LayerCache,
    forward_typed,
    layer_cache,
    typed_graph,
)
from ringfence.models.inference.several_labels.graph import hash_late_entries, list_channel
from ringfence.models.inference.several_labels.plan import plan_typed
from ringfence.models.training.typed_data import select_typed
from tests.models.inference.several_labels.histories import SCHEMAS, History


@pytest.fixture(autouse=True, scope="module")
def _small_hubs():
    """Keep the sums of nearly all context nodes: random graphs are small."""
    before, layer_cache.MIN_ENTRIES_TO_CACHE = layer_cache.MIN_ENTRIES_TO_CACHE, 2
    yield
    layer_cache.MIN_ENTRIES_TO_CACHE = before


def plan_of(network, schema):
    return plan_typed(schema, {name: one.numpy() for name, one in network.state_dict().items()})


def whole(plan, history):
    """Logits of all classified rows, from nothing."""
    rows = np.flatnonzero(history.labels == 0)
    return forward_typed(plan, history.graph(), history.features, rows).logits


steps = st.lists(
    st.tuples(
        st.integers(0, 12), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.booleans()
    ),
    min_size=2,
    max_size=6,
)


@pytest.mark.parametrize("layers", [1, 2, 3])
@settings(max_examples=30, deadline=None)
@given(
    schema=st.sampled_from(SCHEMAS),
    seed=st.integers(0, 10**6),
    history=steps,
    degrees=st.booleans(),
    workers=st.sampled_from([1, 2]),
)
def test_a_pass_that_goes_on_has_the_bits_of_one_from_nothing(
    layers, schema, seed, history, degrees, workers
):
    grown, kept = History(schema, seed), LayerCache()
    plan = plan_of(grown.network(layers, degrees), schema)
    for step in history:
        grown.step(*step)
        rows = np.flatnonzero(grown.labels == 0)
        wanted = grown.rng.choice(rows, min(len(rows), 4))
        found = forward_typed(
            plan, grown.graph(), grown.features, wanted, kept, grown.altered, workers
        )
        everyone = whole(plan, grown)
        np.testing.assert_array_equal(found.logits, everyone[np.searchsorted(rows, wanted)])
        kept = LayerCache.from_arrays(kept.arrays())


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("degrees", [False, True])
def test_logits_are_those_of_the_network(schema, layers, degrees):
    grown = History(schema, 3)
    grown.step(60, 10, 3, 2, True)
    grown.step(20, 10, 3, 2, False)
    network = grown.network(layers, degrees)
    rows = [np.flatnonzero(grown.labels == label) for label in range(len(schema.labels))]
    edges = np.array(sorted(grown.edges), np.int64).reshape(-1, 3).T
    data = select_typed(schema, grown.features, edges, rows, len(grown.labels))
    with torch.no_grad():
        expected = network(*data.tensors()).numpy()
    np.testing.assert_allclose(whole(plan_of(network, schema), grown), expected, atol=2e-5)


def test_what_is_kept_saves_gathering():
    grown, kept = History(SCHEMAS[1], 1), LayerCache()
    plan = plan_of(grown.network(2), SCHEMAS[1])
    grown.step(400, 0, 0, 0, True)
    wanted = np.flatnonzero(grown.labels == 0)[:50]
    first = forward_typed(plan, grown.graph(), grown.features, wanted, kept)
    grown.step(5, 0, 0, 0, False)
    second = forward_typed(plan, grown.graph(), grown.features, wanted, kept, grown.altered)
    assert not first.had_cache
    assert second.had_cache
    assert second.gathered < 0.2 * first.gathered


WAYS_TO_GROW_STALE = ["columns", "relationships", "sums", "rows", "order"]


@pytest.mark.parametrize("way", WAYS_TO_GROW_STALE)
def test_what_is_wrongly_kept_is_noticed(way):
    """The negative control: each way in which kept numbers grow stale shows in the bits."""
    differs = 0
    for seed in range(8):
        grown, kept = History(SCHEMAS[1], seed), LayerCache()
        plan = plan_of(grown.network(2), SCHEMAS[1])
        for merge in (True, True, False):
            grown.step(30, 0, 0, 0, merge)
            rows = np.flatnonzero(grown.labels == 0)
            forward_typed(plan, grown.graph(), grown.features, rows, kept, grown.altered)
        if way == "columns":  # other columns, and nobody says so
            grown.step(2, 0, 0, 20, False)
        elif way == "order":  # a sum in another order of the same numbers: the last bit differs
            kept.labels.clear()
            for channel in kept.channels.values():
                channel.sums = channel.sums * (1 + 1e-7)
        else:  # late and removed relationships, and a hash is made to fit
            grown.step(2, 8, 8, 0, False)
            {"relationships": trust_lists, "sums": trust_sums, "rows": trust_rows}[way](kept, grown)
        found = forward_typed(plan, grown.graph(), grown.features, rows, kept)
        differs += not np.array_equal(found.logits, whole(plan, grown)[: len(rows)])
    assert differs >= 6


def trust_lists(kept, grown):
    """Give every slot the count and the hash of its list as it is now."""
    factor = 0x9E3779B185EBCA87
    for place, channel in kept.channels.items():
        near = list_channel(grown.graph(), grown.schema.channels[place], channel.rows)
        channel.counts[:] = near.counts()
        for slot in range(len(channel.rows)):
            mark = 0
            for source in near.sources[near.offsets[slot] : near.offsets[slot + 1]].tolist():
                mark = (mark * factor + source + 1) % 2**64
            channel.hashes[slot] = mark


def trust_sums(kept, grown):
    """Give every slot the hash of the entries added to and removed from its list."""
    for channel in kept.channels.values():
        channel.late_hashes = hash_late_entries(
            grown.graph().relationships, channel.rows, channel.sizes
        )


def trust_rows(kept, grown):
    """Give every row of the first layer the hash of what its list gained and lost."""
    graph = grown.graph().relationships
    for rows in kept.labels.values():
        rows.late_hashes = hash_late_entries(graph, rows.rows, np.full(len(rows.rows), graph.size))


def test_a_list_is_not_read_again_while_its_beginning_is_known():
    """Newcomers are read alone; once the base was written anew every list is compared again."""
    grown, kept = History(SCHEMAS[1], 2), LayerCache()
    plan = plan_of(grown.network(2), SCHEMAS[1])
    grown.step(200, 0, 0, 0, True)
    rows = np.flatnonzero(grown.labels == 0)
    forward_typed(plan, grown.graph(), grown.features, rows, kept)
    for merge, read_again in ((False, False), (True, True)):
        before = len(grown.labels)
        grown.step(10, 0, 0, 0, merge)
        for channel in kept.channels.values():
            graph, slots = grown.graph().relationships, np.arange(len(channel.rows))
            late = find_late_entries(graph, channel.rows)
            least = channel.beginnings(graph, channel.rows, slots, late)
            assert len(least)
            assert (least == (0 if read_again else before)).all()


def test_rows_that_hear_what_they_heard_are_taken_as_they_were():
    grown, kept = History(SCHEMAS[1], 1), LayerCache()
    plan = plan_of(grown.network(2), SCHEMAS[1])
    grown.step(400, 0, 0, 0, True)
    wanted = np.flatnonzero(grown.labels == 0)[:50]
    first = forward_typed(plan, grown.graph(), grown.features, wanted, kept)
    again = forward_typed(plan, grown.graph(), grown.features, wanted, kept)
    assert again.rows == len(wanted)  # the last layer's
    assert again.rows < first.rows
    np.testing.assert_array_equal(again.logits, first.logits)


def test_the_degree_counts_distinct_neighbours_of_all_labels_but_not_through_cut_relations():
    grown = History(SCHEMAS[3], 0)
    grown.labels = np.array([0, 1, 2, 0])
    grown.edges = {(0, 1, 0), (0, 1, 1), (3, 0, 4), (2, 0, 5)}
    relationships = grown.graph().relationships
    uncut = leave_out_types(relationships, [5])
    rows = np.array([0, 3, 1])
    assert neighbour_counts(uncut, rows).tolist() == [2, 1, 1]
    assert neighbour_counts(relationships, rows).tolist() == [3, 1, 1]


def test_inputs_that_do_not_fit_are_refused():
    grown = History(SCHEMAS[1], 0)
    grown.step(10, 0, 0, 0, True)
    plan = plan_of(grown.network(2), SCHEMAS[1])
    graph, context = grown.graph(), np.flatnonzero(grown.labels == 1)
    with pytest.raises(ValueError, match="classified"):
        forward_typed(plan, graph, grown.features, context)
    with pytest.raises(ValueError, match="float32"):
        forward_typed(plan, graph, [one[:0] for one in grown.features], context[:0])
    with pytest.raises(ValueError, match="one each"):
        typed_graph(graph.relationships, SCHEMAS[1], grown.labels[:-1])
