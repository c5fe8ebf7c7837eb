"""Names from outside meet Cypher through one function, and stay names."""

import os
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import map_one_label
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.write import prediction_sets
from ringfence.connector.store.lease import Lease

TRICKS = [
    "`",
    "\\",
    "\\u0060",
    "u0060",
    "'",
    '"',
    "}",
    ") DETACH DELETE s //",
    "\n",
    "é",
    "𝄞",
    "$x",
]
TEXT = st.characters(exclude_characters="\x00", exclude_categories=["Cs"])
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
NAMES = st.one_of(
    st.lists(st.sampled_from(TRICKS), min_size=1, max_size=6).map("".join),
    st.text(TEXT, min_size=1, max_size=30),
)


EXAMPLES = int(os.environ.get("RINGFENCE_TEST_HOSTILE_NAMES", "300"))
VALUES_AT_ONCE = 25


@pytest.mark.long
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(label=NAMES, prop=NAMES)
def test_any_name_stays_that_name_and_nothing_else_happens(graph, label, prop):
    graph.run("MERGE (:Sentinel)")
    query = f"CREATE (n:{quote(label)} {{{quote(prop)}: 1}}) RETURN labels(n) AS l, keys(n) AS k"
    assert graph.run(query) == [{"l": [label], "k": [prop]}]
    assert graph.run("MATCH (s:Sentinel) RETURN count(s) AS n") == [{"n": 1}]


@settings(
    max_examples=max(1, EXAMPLES // VALUES_AT_ONCE),
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.large_base_example, HealthCheck.too_slow,
    ],
)  # fmt: skip
@given(keys=st.lists(NAMES, min_size=VALUES_AT_ONCE, max_size=VALUES_AT_ONCE, unique=True))
def test_any_key_and_class_is_written_as_it_is_and_nothing_else_happens(workspace, keys):
    graph = workspace.graph
    graph.run("MERGE (:Sentinel)")
    graph.run("MATCH (n) WHERE NOT n:Sentinel DETACH DELETE n")
    mapping = map_one_label("Any", "id", "f", "kind", "at", "zoned", ())
    graph.run("UNWIND $keys AS key CREATE (:Any {id: key})", keys=keys)
    project, classes = keys[0], keys[:3]
    row = SimpleNamespace(
        project=project, seq=1, decided_ns=0, rule="NodeEx", alpha=0.1, threshold=None,
        level=0.1, promise="marginal", n_calibration=1, model="m",
    )  # fmt: skip
    sets = [
        SimpleNamespace(
            project=project, node_key=encode_key(key), size=3, classes=tuple(classes),
            p_values=(0.1, 0.2, 0.3), band=None, created_ns=None, sampled=False, lists={},
        )
        for key in keys
    ]  # fmt: skip
    held = Lease(project, "test", 1, 60.0)
    prediction_sets.write_run(graph, held, row, classes)
    prepared = prediction_sets.prepare_sets(sets, classes)
    assert prediction_sets.write_sets(graph, held, mapping, row, prepared) == []
    shown = graph.read(
        "MATCH (n:Any)-[e:EVALUATED]->(:RingfenceRun {project: $project}) "
        "MATCH (n)-[:MAY_BE]->(c:RingfenceClass) RETURN n.id AS key, collect(c.name) AS names",
        project=project,
    )
    assert {one["key"]: sorted(one["names"]) for one in shown} == {k: sorted(classes) for k in keys}
    assert graph.read("MATCH (s:Sentinel) RETURN count(s) AS n")[0]["n"] == 1


def test_doubling_backticks_alone_would_not_do(graph):
    """The negative control: the usual way of quoting lets an escape through."""
    graph.run("CREATE (:Sentinel)")
    name = "x\\u0060) WITH n MATCH (s:Sentinel) DELETE s //"
    graph.run("CREATE (n:`" + name.replace("`", "``") + "`)")
    assert graph.run("MATCH (s:Sentinel) RETURN count(s) AS n") == [{"n": 0}]


@pytest.mark.parametrize("name", ["", "a\x00b"])
def test_names_that_can_not_be_are_refused(name):
    with pytest.raises(ConfigError):
        quote(name)


@given(st.one_of(st.text(TEXT), NUMBERS))
def test_a_key_comes_back_with_its_type(value):
    back = decode_key(encode_key(value))
    assert (type(back), back) == (type(value), value)


def test_keys_of_different_types_never_collide():
    values = [1, "1", 1.0, "i:1", "f:1.0", "s:1", "é", "e\u0301"]
    assert len({encode_key(value) for value in values}) == len(values)


@pytest.mark.parametrize("value", [None, True, [1], float("nan"), float("inf"), "a\x00b"])
def test_values_that_are_no_keys_are_refused(value):
    with pytest.raises(GraphError):
        encode_key(value)
