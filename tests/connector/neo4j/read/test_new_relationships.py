"""New relationships in parts: by ranges of ids, and by the nodes that they touch."""

from dataclasses import replace

import pytest

from ringfence.connector.mapping import RelationMapping
from ringfence.connector.neo4j.read import id_ranges, relations
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.relations import RelationReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from tests.connector.neo4j.read.forms import add_context, in_form
from tests.connector.neo4j.read.test_incremental import MAPPING, form, read, reader, things

__all__ = ["form", "reader"]

LINKS = """
UNWIND range(0, 39) AS i
MATCH (a:Thing {id: i % 8}), (b:Thing {id: (i * 3 + 1) % 8})
CREATE (a)-[:LINKS {created_at: datetime.realtime()}]->(b)
"""
UNTIMED = replace(MAPPING, relations=(RelationMapping(0, "KNOWS", 0),))
KNOWS = """
UNWIND $pairs AS pair
MATCH (a:Thing {id: pair[0]}), (b:Thing {id: pair[1]}) CREATE (a)-[:KNOWS]->(b)
"""


def ends(mirror):
    source, target, _ = mirror.adjacency.starting_at(mirror.present.nonzero()[0])
    names = mirror.keys
    return sorted((names[a], names[b]) for a, b in zip(source, target, strict=True))


def test_many_new_relationships_come_in_ranges_and_every_one_once(graph, reader, monkeypatch):
    things(graph, *range(8))
    read(reader)
    graph.run(LINKS)
    monkeypatch.setattr(id_ranges, "MAX_COLLECTED", 9)
    queries = list(reader.relation(0).since_queries(0))
    assert len(queries) > 4
    asked = {"rows": 100}
    parts = [
        len(record["sources"])
        for query, values in queries
        for record in reader.graph.stream(query, 2, **asked, **values)
    ]
    assert sum(parts) == 40
    assert max(parts) <= 9  # as many as may be collected at once
    found = read(reader)
    assert found.rebuilt == ""
    assert found.mirror.raw_counts[0] == 40  # parallel ones counted, none of them twice
    monkeypatch.undo()
    assert ends(found.mirror) == ends(sync_mirror(reader, whole=True).mirror)


def test_ranges_that_leave_a_gap_would_show(graph, reader, monkeypatch):
    """The negative control of the test before: counting notices what a range left out."""
    things(graph, *range(8))
    read(reader)
    graph.run(LINKS)
    monkeypatch.setattr(id_ranges, "MAX_COLLECTED", 9)
    whole = id_ranges.relationship_ranges
    monkeypatch.setattr(relations, "relationship_ranges", lambda *of: whole(*of)[1:])
    assert sum(len(block.targets) for block in reader.relation(0).read_since(0)) < 40


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_relationships_at_new_nodes_are_read_some_nodes_at_a_time_and_once(
    graph, connected, tmp_path, form, rows
):
    add_context(form, graph)
    mapping = in_form(form, UNTIMED)
    reader = GraphReader(connected, mapping, tmp_path, rows=rows, overlap_seconds=0.0)
    things(graph, 0, 1)
    read(reader)
    things(graph, *range(2, 10), "1", 11)
    graph.run("CREATE (:Thing {id: [7], x: [1.0, 2.0], created_at: datetime()})")  # no key
    pairs = [[0, 2], [2, 9], [9, 2], [2, 9], [5, 5], [3, 4], [8, 1], ["1", 11], [11, 3], [4, "1"]]
    graph.run(KNOWS, pairs=pairs)
    found = read(reader)
    assert found.mirror.raw_counts[0] == len(pairs)
    assert found.rebuilt == ""
    assert ends(found.mirror) == ends(sync_mirror(reader, whole=True).mirror)


MANY = """
MATCH (a:Thing {id: 0}), (b:Thing {id: 1}) UNWIND range(1, 30000) AS i
CREATE (a)-[:LINKS {created_at: datetime('2026-01-01T00:00:00Z')}]->(b)
"""


def profiled_bytes(graph, query, values):
    with graph.driver.session() as session:
        done = session.run(f"PROFILE {query}", rows=1_000, **values).consume()
    return done.profile["args"]["GlobalMemory"]


@pytest.mark.long
def test_the_servers_memory_is_that_of_a_range(graph, connected, monkeypatch):
    things(graph, 0, 1)
    graph.run(MANY)
    relation = RelationReader(connected, MAPPING, 0, 1_000)
    ((query, values),) = relation.since_queries(0)
    whole = profiled_bytes(connected, query, values)
    monkeypatch.setattr(id_ranges, "MAX_COLLECTED", 3_000)
    parts = list(relation.since_queries(0))
    held = max(profiled_bytes(connected, *part) for part in parts)
    assert whole - held > 30 * (30_000 - 3_000)  # bytes of the references that are not held
