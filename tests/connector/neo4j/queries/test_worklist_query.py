"""The pasted query finds the nodes of the list, and hostile names stay text."""

import pytest

from ringfence.connector.mapping import map_one_label
from ringfence.connector.neo4j.queries import worklist_query as module
from ringfence.connector.neo4j.queries.worklist_query import (
    GraphConditions,
    outcome_queries,
    worklist_query,
)
from ringfence.connector.neo4j.quoting import quote_text
from tests.connector.neo4j.test_quoting import TRICKS

MAPPING = map_one_label("Acc`ount", "i d", "f", "kind", "t", "zoned", ())
NAMES = [*TRICKS, "\\'", "\\\\'", "\\u0027 RETURN 1 //", "\\u005cu0027", "mule"]


def test_any_text_stays_that_text(graph):
    for text in [*NAMES, "".join(NAMES)]:
        assert graph.run(f"RETURN {quote_text(text)} AS t")[0]["t"] == text


@pytest.mark.parametrize("class_", ["mule", "".join(NAMES)])
def test_the_query_gives_the_nodes_that_hold_the_class(graph, class_):
    graph.run(
        "CREATE (c:RingfenceClass {project: 'p', name: $class}), "
        "(r:RingfenceRun {id: 'p/1', project: 'p', seq: 1}) "
        "WITH c, r UNWIND [['a', 0.9, true, 1, NULL, 7], ['b', 0.8, true, 2, 'x', 8], "
        "['c', 0.7, false, 1, NULL, 7], ['d', 0.2, true, 3, NULL, 7]] AS row "
        "CREATE (n:`Acc``ount` {`i d`: row[0], kind: row[4], region: row[5]}) "
        "CREATE (n)-[:MAY_BE {p: row[1], in_set: row[2]}]->(c) "
        "CREATE (n)-[:EVALUATED {size: row[3], lists: "
        "CASE row[0] WHEN 'b' THEN [$class, 'y'] WHEN 'c' THEN [$class] END}]->(r)",
        **{"class": class_},
    )

    def nodes(**wanted):
        query = worklist_query(MAPPING, "p", class_, GraphConditions(**wanted))
        return [row["node"] for row in graph.run(query)]

    assert nodes() == ["a", "b", "d"]
    assert nodes(min_p=0.5, known=False) == ["a"]
    assert nodes(known=True) == ["b"]
    assert nodes(min_size=2, max_size=2, run=1) == ["b"]
    assert nodes(group=("region", "7")) == ["a", "d"]
    assert nodes(run=2) == []
    assert nodes(key="a") == ["a"]
    assert nodes(list_=class_) == ["b", "c"]  # c, though its set does not hold the class
    assert nodes(list_=class_, known=False) == ["c"]
    assert nodes(list_="") == ["a", "d"]
    assert nodes(list_="x") == []


KEYS = ["a", "b'}) DETACH DELETE n //", 3, 0.5, -(2**60)]


@pytest.mark.parametrize("class_", ["mule", "".join(NAMES)])
def test_nodes_get_their_class_and_one_that_stands_is_left(graph, monkeypatch, class_):
    monkeypatch.setattr(module, "ROWS_PER_STATEMENT", 2)
    graph.run(
        "UNWIND $keys AS key CREATE (:`Acc``ount` {`i d`: key}) "
        "CREATE (:Other {`i d`: key})", keys=KEYS,
    )  # fmt: skip
    graph.run("MATCH (n:`Acc``ount` {`i d`: 3}) SET n.`ki``nd` = 'known before'")
    statements = list(outcome_queries(MAPPING, "ki`nd", [(key, class_) for key in KEYS]))
    assert len(statements) == 3
    for statement in statements:
        graph.run(statement.rstrip().rstrip(";"))
    rows = graph.run("MATCH (n) RETURN labels(n)[0] AS label, n.`i d` AS key, n.`ki``nd` AS class")
    expected = {("Acc`ount", key): class_ for key in KEYS}
    expected |= {("Other", key): None for key in KEYS} | {("Acc`ount", 3): "known before"}
    assert {(row["label"], row["key"]): row["class"] for row in rows} == expected


def test_without_classes_there_is_no_statement():
    assert list(outcome_queries(MAPPING, "kind", [])) == []
