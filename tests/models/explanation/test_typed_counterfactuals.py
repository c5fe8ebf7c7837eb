"""Answers on typed graphs equal those of a graph that never had what is taken away."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.models.explanation.counterfactual_query import ANY, Question, touched_rows
from ringfence.models.explanation.typed_counterfactuals import TypedWhatIf, neighbours_by_relation
from ringfence.models.inference import leave_out_types
from ringfence.models.inference.several_labels import forward_typed, layer_cache
from ringfence.models.inference.several_labels.plan import plan_typed
from tests.models.inference.several_labels.histories import SCHEMAS, History


@pytest.fixture(autouse=True, scope="module")
def _small_hubs():
    before, layer_cache.MIN_ENTRIES_TO_CACHE = layer_cache.MIN_ENTRIES_TO_CACHE, 2
    yield
    layer_cache.MIN_ENTRIES_TO_CACHE = before


def asked(history):
    plan = plan_typed(
        history.schema, {n: one.numpy() for n, one in history.network(2).state_dict().items()}
    )
    graph = history.graph()
    outer = [i for i, one in enumerate(history.schema.relations) if one.source or one.target]
    inner = leave_out_types(graph.relationships, outer)
    features = [rows.copy() for rows in history.features]

    def encode_under(question):
        own = np.array(history.features[0][graph.places[question.node]])
        own[list(question.blank)] = -3.0
        return {question.node: own} if question.blank else {}

    return plan, TypedWhatIf(plan, graph, inner, features, encode_under)


def from_scratch(plan, history, question, wanted):
    """The outputs of a graph that is built without what a question takes away."""
    changed = copy.deepcopy(history)
    node, place = question.node, history.graph().places[question.node]
    for other, kind in question.without:
        changed.edges = {
            (source, target, relation)
            for source, target, relation in changed.edges
            if kind not in (ANY, relation)
            or node not in (source, target)
            or (other != ANY and other not in (source, target))
            or (source == target and other not in (ANY, node))
        }
    changed.base = set(changed.edges)
    changed.features[0][place, list(question.blank)] = -3.0
    return forward_typed(plan, changed.graph(), changed.features, wanted).logits


@settings(max_examples=25, deadline=None)
@given(
    schema=st.sampled_from(SCHEMAS),
    seed=st.integers(0, 10**6),
    history=st.lists(
        st.tuples(
            st.integers(0, 12), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2),
            st.booleans(),
        ),
        min_size=1, max_size=4,
    ),
)  # fmt: skip
def test_every_answer_is_that_of_a_graph_built_without_it(schema, seed, history):
    grown = History(schema, seed)
    grown.step(15, 0, 0, 0, True)
    for step in history:
        grown.step(*step)
    plan, what_if = asked(grown)
    rows = np.flatnonzero(grown.labels == 0)
    node = int(rows[grown.rng.integers(len(rows))])
    near = neighbours_by_relation(what_if.graph, node)
    questions = [Question(node, ((other, relation),)) for other, relation in near]
    questions += [Question(node, ((ANY, relation),)) for relation in {kind for _, kind in near}]
    questions += [Question(node, blank=(0,)), Question(node, ((ANY, ANY),), (0,))]
    base = forward_typed(plan, grown.graph(), grown.features, rows).logits
    for question in questions:
        expected = from_scratch(plan, grown, question, rows)
        np.testing.assert_array_equal(what_if.outputs(question, rows), expected, str(question))
    np.testing.assert_array_equal(what_if.outputs(None, rows), base)  # nothing of it stays


def test_control_a_neighbour_that_stays_would_be_noticed():
    grown = History(SCHEMAS[1], 5)
    grown.step(40, 5, 0, 0, True)
    plan, what_if = asked(grown)
    rows = np.flatnonzero(grown.labels == 0)
    node = next(int(row) for row in rows if neighbours_by_relation(what_if.graph, int(row)))
    (other, relation), *_ = neighbours_by_relation(what_if.graph, node)
    question = Question(node, ((other, relation),))
    assert touched_rows(what_if.graph.relationships, question) == {node, other}
    assert not np.array_equal(
        what_if.outputs(None, rows), from_scratch(plan, grown, question, rows)
    )
