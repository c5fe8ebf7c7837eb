"""Properties of relationships: read with them, each relationship by itself, and kept up to date."""

import random

import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import ColumnMapping, GraphMapping, NodeMapping, RelationMapping
from ringfence.connector.mirror import compaction
from ringfence.connector.neo4j.read import reader as reader_module
from ringfence.connector.neo4j.read import streams, sync
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror

TRANSFERS = """
UNWIND range(1, 6) AS i CREATE (:Account {id: i})
WITH count(*) AS n CREATE (:Bank {code: 'B'})
WITH count(*) AS n MATCH (a:Account {id: 1}), (b:Account {id: 2}), (c:Account {id: 3}), (k:Bank)
CREATE (a)-[:SENT {amount: 10.5, at: date('2026-01-01')}]->(b),
  (a)-[:SENT {amount: 10.5, at: date('2026-01-01')}]->(b), (a)-[:SENT {amount: 7}]->(b),
  (c)-[:SENT {amount: 1}]->(c), (b)-[:SENT]->(a), (k)-[:HOLDS {since: 1999}]->(a)
"""
EVERYTHING = """
MATCH (a)-[r:SENT|HOLDS]->(b)
RETURN coalesce(a.id, a.code) AS a, coalesce(b.id, b.code) AS b, type(r) AS type,
  r.amount AS amount, r.since AS since
"""


def transfers(relation_time=None, account_time=None):
    return GraphMapping(
        (NodeMapping("Account", "id", (), account_time), NodeMapping("Bank", "code")),
        (
            RelationMapping(0, "SENT", 0, created_at=relation_time,
                            columns=(ColumnMapping("amount"), ColumnMapping("at"))),
            RelationMapping(1, "HOLDS", 0, columns=(ColumnMapping("since"),)),
        ),
        "kind", "zoned",
    )  # fmt: skip


class Case:
    def __init__(self, graph, folder, mapping=None):
        self.graph, self.folder, self.mapping = graph, folder, mapping or transfers()
        self.check_nodes = 0

    def read(self, *, whole=False, save=True):
        reader = GraphReader(
            self.graph, self.mapping, self.folder, 1000, 5.0, check_nodes=self.check_nodes
        )
        found = sync_mirror(reader, whole=whole)
        if save:
            mirrors.save(found.mirror, self.folder)
        return found

    def held(self, found):
        """What the mirror has of each relationship, by the keys of its ends."""
        mirror, listed = found.mirror, []
        for index, table in mirror.related.items():
            places = table.live.nonzero()[0]
            sources, targets = table.ends(places)
            values = table.records.columns(places)
            amounts = values.get("amount") or values["since"]
            for source, target, amount in zip(sources, targets, amounts, strict=True):
                ends = [mirrors.plain_key(mirror.keys[int(row)])[2:] for row in (source, target)]
                listed.append((*ends, index, amount))
        return sorted(map(repr, listed))

    def in_graph(self):
        rows = self.graph.read(EVERYTHING)
        kinds = {"SENT": 0, "HOLDS": 1}
        return sorted(
            repr((str(row["a"]), str(row["b"]), kinds[row["type"]],
                  row["amount"] if row["type"] == "SENT" else row["since"]))
            for row in rows
        )  # fmt: skip

    def check(self, found):
        """Each relationship is there once, the adjacency has each pair once, the counts add up."""
        mirror = found.mirror
        assert self.held(found) == self.in_graph()
        for index, table in mirror.related.items():
            ends = {(a, b) for a, b in zip(*table.ends(table.live.nonzero()[0]), strict=True)}
            edges = {(a, b) for a, b, kind in mirror.edges.T.tolist() if kind == index}
            assert edges == {(int(a), int(b)) for a, b in ends}
            assert mirror.raw_counts[index] == table.count
        again = sync_mirror(GraphReader(self.graph, self.mapping, self.folder / "w", 1000, 5.0))
        assert self.held(again) == self.held(found)


@pytest.fixture
def case(connected, tmp_path):
    connected.run(TRANSFERS)
    return Case(connected, tmp_path / "mirror")


def test_every_relationship_is_read_with_its_values_parallels_and_loops_too(case):
    found = case.read()
    case.check(found)
    assert found.mirror.related[0].count == 5
    assert found.mirror.edge_count == 4
    case.check(case.read())  # from the files


def test_without_columns_parallels_count_once_and_nothing_is_kept_beside_them(connected, tmp_path):
    connected.run(TRANSFERS)
    relations = (RelationMapping(0, "SENT", 0),)
    mapping = GraphMapping((NodeMapping("Account", "id"),), relations, "kind", "zoned")
    mirror = Case(connected, tmp_path, mapping).read().mirror
    assert (mirror.edge_count, mirror.related) == (3, {})
    assert not list(mirror.folder.glob("related*"))


def test_late_parallel_and_deleted_relationships_show_in_the_counts(case):
    case.read()
    case.graph.run(
        "MATCH (a:Account {id: 1}), (b:Account {id: 2}), (d:Account {id: 4}) "
        "CREATE (a)-[:SENT {amount: 99}]->(b), (d)-[:SENT {amount: 5}]->(d)"
    )
    found = case.read()
    assert "read all relationships again" in found.note
    case.check(found)
    case.graph.run("MATCH ()-[r:SENT]->() WHERE r.amount = 10.5 WITH r LIMIT 1 DELETE r")
    found = case.read()
    assert "read all relationships again" in found.note
    case.check(found)
    assert "counts differed" not in case.read().note


def test_changed_late_and_removed_values_are_found_by_slices(case):
    case.read()
    case.graph.run("MATCH ()-[r:SENT {amount: 7}]->() SET r.amount = 8")
    case.graph.run("MATCH (:Account {id: 2})-[r:SENT]->() SET r.amount = 'text', r.at = time()")
    case.graph.run("MATCH ()-[r:HOLDS]->() REMOVE r.since")
    version = case.read().mirror.version
    case.check_nodes = 100
    found = case.read()
    assert "3 relationships had changed" in found.note
    assert "read all" not in found.note
    case.check(found)
    came, gone = found.mirror.related[0].changes_since(version)
    assert (len(came), len(gone)) == (2, 2)
    assert "changed" not in case.read().note


def test_a_slice_sees_a_parallel_that_came_for_another_that_went(case):
    """The counts stay equal; ends and numbers differ."""
    case.read()
    case.graph.run(
        "MATCH (a:Account {id: 1})-[r:SENT {amount: 7}]->(b) DELETE r "
        "WITH a, b CREATE (a)-[:SENT {amount: 70}]->(b)"
    )
    case.graph.run(
        "MATCH (:Account {id: 2})-[r:SENT]->() DELETE r "
        "WITH 1 AS x MATCH (d:Account {id: 4}), (e:Account {id: 5}) CREATE (d)-[:SENT]->(e)"
    )
    case.check_nodes = 100
    found = case.read()
    assert "compared" in found.note
    case.check(found)


def test_relationships_of_new_and_deleted_nodes_come_and_go_with_them(case):
    case.read()
    case.graph.run(
        "MATCH (a:Account {id: 1}) CREATE (n:Account {id: 7}) "
        "CREATE (n)-[:SENT {amount: 1.25}]->(a), (a)-[:SENT {amount: 2}]->(n), "
        "(n)-[:SENT {amount: 3}]->(n), (n)-[:SENT {amount: 3}]->(n)"
    )
    found = case.read()
    assert "counts differed" not in found.note
    case.check(found)
    case.graph.run("MATCH (n:Account {id: 1}) DETACH DELETE n")
    found = case.read()
    case.check(found)
    assert "read all relationships" not in found.note


def test_relationships_with_times_are_read_by_them(connected, tmp_path):
    connected.run(TRANSFERS)
    connected.run("MATCH (a:Account) SET a.made = datetime() - duration('P1D')")
    connected.run("MATCH ()-[r:SENT]->() SET r.made = datetime() - duration('P1D')")
    case = Case(connected, tmp_path, transfers("made", "made"))
    case.read()
    connected.run(
        "MATCH (a:Account {id: 1}) CREATE (n:Account {id: 9, made: datetime()}) "
        "CREATE (n)-[:SENT {amount: 5, made: datetime()}]->(a), "
        "(a)-[:SENT {amount: 6, made: datetime()}]->(n), "
        "(a)-[:SENT {amount: 6, made: datetime()}]->(a)"
    )
    for _ in range(2):  # the overlap reads them again
        found = case.read()
        assert "counts differed" not in found.note
        case.check(found)


def test_a_relationship_whose_node_waits_in_quarantine_comes_with_it(case):
    case.graph.run("MATCH (a:Account {id: 6}) CREATE (a)-[:SENT {amount: 4}]->(:Account)")
    case.read()
    case.graph.run("MATCH (n:Account) WHERE n.id IS NULL SET n.id = 66")
    case.check(case.read())


def test_a_value_that_can_not_travel_is_missing_and_no_relationship_is_lost(case):
    case.graph.run(
        "MATCH (a:Account {id: 4}), (b:Account {id: 5}) "
        "CREATE (a)-[:SENT {amount: 3, at: date('+12000-01-01')}]->(b)"
    )
    found = case.read()
    case.check(found)
    table = found.mirror.related[0]
    values = table.records.columns(table.live.nonzero()[0])
    assert values["at"][values["amount"].index(3)] is None


def test_a_first_read_that_dies_goes_on_and_brings_each_relationship_once(case, monkeypatch):
    class Dies(Exception):
        pass

    done = []

    def die(mirror, folder):
        save_part(mirror, folder)
        done.append(len(mirror.related[0].live))
        if done[-1]:
            raise Dies

    save_part = mirrors.save_part
    with monkeypatch.context() as patch:
        patch.setattr(reader_module.mirrors, "save_part", die)
        reader = GraphReader(case.graph, case.mapping, case.folder, 1, 5.0, part_seconds=0.0)
        with pytest.raises(Dies):
            sync_mirror(reader)
    case.graph.run("MATCH ()-[r:SENT {amount: 7}]->() SET r.amount = 8")
    found = case.read()
    assert "continued" in found.rebuilt
    case.check_nodes = 100
    case.check(case.read())


def test_two_streams_read_what_one_does(case, monkeypatch):
    monkeypatch.setattr(streams, "MIN_NODES_FOR_STREAMS", 1)
    case.check(case.read())


def test_compaction_keeps_relationships_and_drops_what_they_were(case, monkeypatch):
    monkeypatch.setattr(compaction, "MIN_ROWS_TO_COMPACT", 0)
    case.read()
    case.graph.run("MATCH (n:Account {id: 3}) DETACH DELETE n")
    case.graph.run("MATCH ()-[r:SENT {amount: 7}]->() SET r.amount = 8")
    case.check_nodes = 100
    before = case.read().mirror
    monkeypatch.setattr(sync, "read_whole", None)  # nobody may ask for it
    found = case.read()
    assert found.mirror.epoch != before.epoch
    assert found.mirror.related[0].dead == 0
    monkeypatch.undo()
    case.check(found)


def test_a_random_history_leaves_what_the_graph_has(case):
    """A node is deleted, relationships come, go and change; a mirror that is kept has them all."""
    rng = random.Random(7)
    case.check_nodes = 100
    case.read()
    for step in range(6):
        for _ in range(rng.randint(0, 4)):
            a, b = rng.randint(1, 9), rng.randint(1, 9)
            case.graph.run(
                "MERGE (a:Account {id: $a}) MERGE (b:Account {id: $b}) "
                "CREATE (a)-[:SENT {amount: $x}]->(b)",
                a=a, b=b, x=rng.choice([step, 0.5, "odd", None]),
            )  # fmt: skip
        case.graph.run(
            "MATCH ()-[r:SENT]->() WITH r ORDER BY elementId(r) LIMIT $n DELETE r",
            n=rng.randint(0, 2),
        )
        case.graph.run("MATCH ()-[r:SENT]->() WITH r LIMIT 2 SET r.amount = $x", x=step * 100)
        if step == 3:
            case.graph.run("MATCH (n:Account {id: 1}) DETACH DELETE n")
        case.check(case.read())
