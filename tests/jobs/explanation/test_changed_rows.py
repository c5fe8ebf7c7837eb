"""Questions about relationships with columns are answered as if the graph had been another one."""

import numpy as np
import pytest

from ringfence.connector.mirror.raw_table import encode_columns
from ringfence.jobs.explanation.changed_rows import ChangedRows
from ringfence.jobs.inference import inference_graph
from ringfence.jobs.project.columns.column_encoders import network_of, schema_of
from ringfence.models.explanation.counterfactual_query import ANY, Question
from ringfence.models.explanation.typed_counterfactuals import TypedWhatIf
from ringfence.models.inference.several_labels import forward_typed, typed_graph
from tests.jobs.inference.test_relation_columns import bring, empty, transfers
from tests.jobs.inference.test_typed_pass import model_of


def asked(typed, related, model):
    """The network, what answers questions about it, and the encoded rows."""
    network = network_of(model)
    graph = typed_graph(
        inference_graph(typed, related.mapping), schema_of(related.mapping), typed.labels
    )
    changed = ChangedRows(typed, related.mapping, network.encoders)
    features = [network.encoders.encode(typed, 0, np.arange(typed.size))]
    what_if = TypedWhatIf(network.plan(), graph, graph.relationships, features, changed.encode)
    return network, what_if, changed


def outputs(typed, related, model):
    """The outputs of the mirror as it is, from nothing."""
    network, what_if, _ = asked(typed, related, model)
    rows = typed.rows_of_label(0)
    return forward_typed(network.plan(), what_if.graph, what_if.features, rows).logits


@pytest.fixture
def world(tmp_path):
    related = transfers(x="number", y="category")
    typed = empty(tmp_path, related)
    bring(typed, related, related.step(14, 30, 0, 0))
    return typed, related, model_of(related.world, typed, 2)


def node_with_neighbours(typed):
    sources, targets = typed.related[0].ends(np.flatnonzero(typed.related[0].live))
    node = int(np.bincount(sources[sources != targets]).argmax())
    other = int(targets[(sources == node) & (targets != node)][0])
    return node, other


@pytest.mark.parametrize("every", [False, True])
def test_a_neighbour_goes_with_its_relationships_at_both_ends(world, every):
    typed, related, model = world
    node, other = node_with_neighbours(typed)
    _, what_if, _ = asked(typed, related, model)
    before = outputs(typed, related, model)
    question = Question(node, ((ANY if every else other, 0),))
    rows = typed.rows_of_label(0)
    answer = what_if.outputs(question, rows)
    back = what_if.outputs(None, rows)
    ends = typed.edges[:, (typed.edges[:2] == node).any(axis=0)]
    if not every:
        ends = ends[:, (ends[:2] == other).any(axis=0)]
    typed.advance()
    typed.remove_relationships(ends)
    np.testing.assert_allclose(answer, outputs(typed, related, model), atol=1e-6)
    np.testing.assert_array_equal(back, before)
    assert not np.allclose(answer, before)


def test_a_blank_column_is_left_out_of_the_means_of_the_node_alone(world):
    typed, related, model = world
    node, _ = node_with_neighbours(typed)
    _, what_if, changed = asked(typed, related, model)
    (place,) = (place for place, name in changed.columns if name == "PAID.x")
    encoded = changed.encode(Question(node, blank=(place,)))
    assert list(encoded) == [node]
    own = what_if.features[0][node]
    names = changed.encoders.raw_names(0)
    moved = {name for name, a, b in zip(names, own, encoded[node], strict=True) if a != b}
    assert moved == {"PAID.x"}
    table = typed.related[0]
    places = np.flatnonzero(table.live)
    values = table.records.columns(places)
    texts = encode_columns([[None] * len(places), values["y"]], len(places))
    sources, targets = table.ends(places)
    typed.advance()
    table.put(table.numbers.array[places], sources, targets, texts, typed.version)
    everywhere = changed.encoders.encode(typed, 0, np.array([node]))[0]
    np.testing.assert_array_equal(encoded[node], everywhere)
