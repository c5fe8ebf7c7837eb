"""How the server finds what is new: by its index on creation times, whatever it holds."""

import pytest

from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.migrate import create_user_indexes
from ringfence.connector.neo4j.read.relations import RelationReader
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.samples.accounts import SAMPLE_MAPPING

IMPORTED = """
UNWIND range(0, 1999) AS i
CREATE (:Account {id: i, features: [1.0], created_at: datetime('2026-01-01T00:00:00Z')})
WITH collect(i) AS all_
MATCH (a:Account), (b:Account) WHERE b.id IN [a.id + 1, a.id + 7, a.id + 31, a.id + 99]
CREATE (a)-[:PAID {created_at: datetime('2026-01-01T00:00:00Z')}]->(b)
"""
SINCE_NS = 1_767_300_000 * NANOSECONDS


def operators(plan):
    return [
        plan["operatorType"],
        *(name for one in plan.get("children", []) for name in operators(one)),
    ]


@pytest.mark.long
def test_new_relationships_are_found_by_index_where_an_import_gave_all_one_time(graph):
    graph.run(IMPORTED)
    opened = connect(graph.uri, *graph.auth)
    try:
        create_user_indexes(opened, SAMPLE_MAPPING)
        opened.read("CALL db.prepareForReplanning()")
        relation = RelationReader(opened, SAMPLE_MAPPING, 0, 10)
        ((query, values),) = relation.since_queries(SINCE_NS)
        with opened.driver.session() as session:
            plan = session.run(f"EXPLAIN {query}", rows=10, **values).consume().plan
    finally:
        opened.close()
    used = operators(plan)
    assert any("RelationshipIndexSeekByRange" in name for name in used), used
    assert not any("Scan" in name for name in used), used
