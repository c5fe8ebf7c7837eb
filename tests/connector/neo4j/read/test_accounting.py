"""What counting finds: deletions and late rows behind new ones; nothing where nothing is wrong."""

import os
import random
import threading
import time

import numpy as np
import pytest
from neo4j import GraphDatabase

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import RelationMapping, map_one_label
from ringfence.connector.mirror import files as mirror_files
from ringfence.connector.neo4j.read import sync as module
from ringfence.connector.neo4j.read.accounting import Difference
from ringfence.connector.neo4j.read.counts import count_graph
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from tests.connector.neo4j.read.forms import (
    FORMS,
    ONE_LABEL,
    SEVERAL_LABELS,
    add_context,
    contents,
    in_form,
    inner_links,
)

OLD = "datetime('2024-01-01T00:00:00Z')"
FILL = f"""
UNWIND range(0, 99) AS i CREATE (n:Thing {{id: i, x: [1.0, 2.0], created_at: {OLD}}})
WITH collect(n) AS all UNWIND range(0, 99) AS i
WITH all[i] AS a, all[(i * 7 + 3) % 100] AS b CREATE (a)-[:LINKS {{created_at: {OLD}}}]->(b)
"""
ADD_NODES = """
UNWIND $ids AS i CREATE (n:Thing {id: i, x: [1.0, 2.0], created_at: datetime.realtime()})
WITH n, i MATCH (a:Thing {id: i % 100})
CREATE (n)-[:LINKS {created_at: datetime.realtime()}]->(a)
"""


def mapping_of(*, timed):
    kind = RelationMapping(0, "LINKS", 0, created_at="created_at" if timed else None)
    return map_one_label("Thing", "id", "x", "class", "created_at", "zoned", (kind,))


UNIQUE_KEYS = (("Thing", "id"),)


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["timed", "untimed"])
def reader(graph, connected, tmp_path, request, form):
    graph.run(FILL)
    add_context(form, graph)
    mapping = in_form(form, mapping_of(timed=request.param))
    reader = GraphReader(connected, mapping, tmp_path, rows=1_000, overlap_seconds=1.0)
    read(reader)
    return reader


def read(reader):
    found = sync_mirror(reader)
    mirrors.save(found.mirror, reader.folder)
    return found


def assert_equals_graph(reader, found):
    fresh = GraphReader(reader.graph, reader.mapping, reader.folder / "fresh", 1_000, 1.0)
    assert contents(found.mirror) == contents(sync_mirror(fresh, whole=True).mirror)
    again = read(reader)
    assert (again.rebuilt, "counts differed" in again.note) == ("", False)
    assert contents(again.mirror) == contents(found.mirror)


def test_forty_relationships_deleted_behind_more_new_ones_leave_the_mirror(graph, reader):
    graph.run("MATCH (:Thing)-[r:LINKS]->() WITH r ORDER BY startNode(r).id LIMIT 40 DELETE r")
    graph.run(ADD_NODES, ids=list(range(1_000, 1_060)))
    found = read(reader)
    assert len(inner_links(found.mirror)) == 100 - 40 + 60
    assert (found.rebuilt, "read all relationships again (" in found.note) == ("", True)
    assert len(found.new_rows) == 60
    assert_equals_graph(reader, found)


@pytest.mark.parametrize("created", ["null", OLD, "'yesterday'"])
def test_a_relationship_between_old_nodes_is_read_whatever_its_time(graph, reader, created):
    graph.run(
        "MATCH (a:Thing {id: 1}), (b:Thing {id: 2}) "
        f"CREATE (a)-[r:LINKS]->(b) SET r.created_at = {created}"
    )
    found = read(reader)
    assert ("i:1", "i:2", 0) in inner_links(found.mirror)
    assert_equals_graph(reader, found)


def test_a_backdated_node_is_read_with_its_relationships_and_nothing_else(graph, reader):
    graph.run(
        "MATCH (a:Thing {id: 1}) CREATE (:Thing {id: 'late', x: [0.0, 0.0], "
        "created_at: datetime('2001-01-01T00:00:00Z')})-[:LINKS {created_at: datetime()}]->(a)"
    )
    found = read(reader)
    assert found.mirror.keys.take(found.new_rows.tolist()) == ["s:late"]
    assert (found.rebuilt, "read 1 nodes that had been missed" in found.note) == ("", True)
    assert ("s:late", "i:1", 0) in inner_links(found.mirror)
    assert_equals_graph(reader, found)


def test_a_node_deleted_with_its_relationships_while_a_backdated_one_came(graph, reader):
    graph.run("MATCH (n:Thing {id: 5}) DETACH DELETE n")
    graph.run(f"CREATE (:Thing {{id: 'late', x: [0.0, 0.0], created_at: {OLD}}})")
    found = read(reader)
    assert (found.rebuilt, "1 nodes were deleted" in found.note) == ("", True)
    assert "s:late" in found.mirror.keys
    assert "i:5" not in found.mirror.keys
    assert_equals_graph(reader, found)


def test_a_deleted_node_costs_what_it_touches_and_comes_again_as_another(graph, reader):
    before = read(reader).mirror
    epoch, version, size = before.epoch, before.version, before.size
    del before
    graph.run("MATCH (n:Thing {id: 5}) DETACH DELETE n")
    found = read(reader)
    assert "read all relationships again" not in found.note
    mirror = found.mirror
    assert (mirror.epoch, mirror.size, mirror.node_count) == (epoch, size, size - 1)
    touched = 2 + len(reader.mapping.nodes)  # itself, two others, and a place where it has one
    assert np.count_nonzero(mirror.adjacency.changed > version) <= touched
    assert_equals_graph(reader, found)
    del found, mirror
    graph.run(ADD_NODES, ids=[5])
    found = read(reader)
    assert found.mirror.find(["i:5"]).tolist() == [size]
    assert_equals_graph(reader, found)


UNUSABLE = {  # a node's properties, and what repairs it
    ONE_LABEL: ("created_at: datetime()", "n.x = [1.0, 2.0]"),
    SEVERAL_LABELS: (
        f"x: [1.0, 2.0], created_at: datetime(), class: '{'c' * 600}'",
        "n.class = 'a'",
    ),
}


def test_relationships_of_nodes_in_quarantine_and_of_other_labels_are_no_difference(
    graph, reader, form
):
    properties, repair = UNUSABLE[form]
    graph.run(
        "MATCH (a:Thing {id: 1}) CREATE (a)-[:LINKS {created_at: datetime()}]->(:Other), "
        "(:Other)-[:LINKS {created_at: datetime()}]->(a), "
        "(:Other)-[:LINKS {created_at: datetime()}]->(:Other), "
        f"(a)-[:LINKS {{created_at: datetime()}}]->(:Thing {{id: 'bad', {properties}}})"
    )
    found = read(reader)
    assert (found.rebuilt, found.note, len(found.mirror.rejected)) == ("", "", 1)
    graph.run(f"MATCH (n:Thing {{id: 'bad'}}) SET {repair}")
    assert read(reader).note == ""
    assert_equals_graph(reader, read(reader))


def test_a_mirror_saved_by_an_older_version_is_read_anew_and_accounted_for_from_then_on(
    graph, reader, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(mirror_files, "FORMAT", 4)
        read(reader)
    assert read(reader).rebuilt == "first read"
    assert (read(reader).rebuilt, read(reader).note) == ("", "")
    graph.run("MATCH (:Thing {id: 7})-[r:LINKS]->() DELETE r")
    graph.run(ADD_NODES, ids=[1_000, 1_001])
    assert_equals_graph(reader, read(reader))


def test_without_the_accounts_forty_deleted_relationships_would_stay(graph, reader, monkeypatch):
    """The negative control: what is new alone."""
    monkeypatch.setattr(module, "settle_accounts", lambda *_: Difference())
    graph.run("MATCH (:Thing)-[r:LINKS]->() WITH r ORDER BY startNode(r).id LIMIT 40 DELETE r")
    graph.run(ADD_NODES, ids=list(range(1_000, 1_060)))
    assert len(inner_links(read(reader).mirror)) == 160


def test_counts_come_from_the_count_store(graph, reader):
    counts = count_graph(reader.graph, reader.mapping)
    joined = 2 * 34 if len(reader.mapping.nodes) > 1 else 0
    assert (counts.classified, counts.relations[0].both, counts.outgoing) == (
        100,
        100,
        100 + joined,
    )
    with graph.driver.session() as session:
        for part in ("(:Thing)-[r:LINKS]->()", "()-[r:LINKS]->(:Thing)", "()-[r:LINKS]->()"):
            query = f"PROFILE MATCH {part} WITH count(r) AS n RETURN 1 AS at, 'from' AS what, n"
            plan = session.run(query).consume().profile
            assert "CountFromCountStore" in str(plan)


def write(graph, first, stop, done):
    chance, number = random.Random(first), first
    with GraphDatabase.driver(graph.uri, auth=graph.auth) as driver:
        while not stop.is_set():
            ids = list(range(number, number + chance.randint(1, 4)))
            with driver.session() as session, session.begin_transaction() as transaction:
                transaction.run(ADD_NODES, ids=ids).consume()
                time.sleep(min(0.3, chance.expovariate(20)))
                transaction.commit()
            done.extend(ids)
            number = ids[-1] + 1


WRITERS = 20
READS = int(os.environ.get("RINGFENCE_TEST_READS_BESIDE_WRITERS", "12"))


@pytest.mark.long
def test_twenty_writers_at_work_cause_no_comparison_and_nothing_is_missed(graph, reader):
    """Each writer adds nodes with relationships; at last some are deleted while they write."""
    stop, done = threading.Event(), [[] for _ in range(WRITERS)]
    graph.run("CREATE INDEX FOR (n:Thing) ON (n.created_at)")
    graph.run("CREATE INDEX FOR ()-[r:LINKS]-() ON (r.created_at)")
    threads = [
        threading.Thread(target=write, args=(graph, (n + 1) * 1_000_000, stop, done[n]))
        for n in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    notes = []
    try:
        for _ in range(READS):
            found = read(reader)
            notes.append(found.rebuilt + found.note)
        graph.run("MATCH (n:Thing)-[r:LINKS]->() WHERE n.id < 5 DELETE r")
        for _ in range(3):
            found = read(reader)
            notes.append(found.rebuilt + found.note)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    found = read(reader)
    notes.append(found.rebuilt + found.note)
    needless = [note for note in notes[:READS] if note]
    told = [note for note in notes[READS:] if note]
    print(
        f"{WRITERS} writers, {sum(map(len, done))} nodes in {len(notes)} reads, "
        f"{len(needless)} needless comparisons, after deletions: {told}"
    )
    assert needless == []
    assert len(told) == 1
    assert "read all relationships again (" in told[0]
    assert_equals_graph(reader, found)


ODD = {
    "'yesterday'": "created_at is of no use: yesterday, STRING; read all the same",
    "datetime('2300-01-01T00:00:00Z')": "created_at is of no use: 2300-01-01T00:00:00Z, outside "
    "1677 to 2262; read all the same",
    "null": "created_at is missing; read all the same",
}


@pytest.mark.parametrize("reader", [True], indirect=True, ids=["timed"])
def test_relationships_with_odd_times_are_read_and_listed_with_keys_and_value(graph, reader):
    for place, created in enumerate(ODD):
        graph.run(
            "MATCH (a:Thing {id: $i}), (b:Thing {id: 50}) "
            f"CREATE (a)-[r:LINKS]->(b) SET r.created_at = {created}",
            i=place,
        )
    found = read(reader)
    assert "without a usable time were read, e.g. i:" in found.note
    assert {(f"i:{i}", "i:50", 0) for i in range(3)} <= inner_links(found.mirror)
    listed = {one.node_key: one for one in found.mirror.odd_relationships}
    for place, reason in enumerate(ODD.values()):
        assert listed[f"i:{place}"].reason == f"-[LINKS]-> i:50: {reason}"
        assert listed[f"i:{place}"].kind == "relationship"
    assert_equals_graph(reader, found)
    again = read(reader)  # the accounts include them: nothing is read again, the list stays
    assert (again.note, again.mirror.odd_relationships) == ("", found.mirror.odd_relationships)
    graph.run("MATCH ()-[r:LINKS]->(:Thing {id: 50}) WHERE r.created_at IS NULL DELETE r")
    fewer = read(reader)
    assert len(fewer.mirror.odd_relationships) == 2
    assert_equals_graph(reader, fewer)
