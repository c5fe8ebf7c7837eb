"""Names from outside meet Cypher through one function, and stay names."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.quoting import quote

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


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(label=NAMES, prop=NAMES)
def test_any_name_stays_that_name_and_nothing_else_happens(graph, label, prop):
    graph.run("MERGE (:Sentinel)")
    query = f"CREATE (n:{quote(label)} {{{quote(prop)}: 1}}) RETURN labels(n) AS l, keys(n) AS k"
    assert graph.run(query) == [{"l": [label], "k": [prop]}]
    assert graph.run("MATCH (s:Sentinel) RETURN count(s) AS n") == [{"n": 1}]


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
