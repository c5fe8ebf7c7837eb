"""Several labels read from a real graph: what is new joins, what differs is read again."""

import datetime as dt
from pathlib import Path

import numpy as np
import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import (
    ColumnMapping,
    GraphMapping,
    NodeMapping,
    RelationMapping,
)
from ringfence.connector.mirror import compaction
from ringfence.connector.mirror.raw_values import RawDuration, RawPoint
from ringfence.connector.neo4j.read import append, sync
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror

FLIGHTS = """
CREATE (jfk:Airport {faa: 'JFK', name: 'Kennedy', altitude: 13})
CREATE (bos:Airport {faa: 'BOS', name: 'Logan'})
CREATE (ua:Carrier {code: 'UA', at: point({longitude: 1.5, latitude: 2.5})})
WITH jfk, bos, ua
UNWIND range(1, 6) AS i
CREATE (f:Flight {id: i, hour: i, day: date('2013-01-01') + duration({days: i}),
  status: CASE WHEN i < 5 THEN CASE i % 2 WHEN 0 THEN 'late' ELSE 'good' END END})
CREATE (f)-[:FROM]->(jfk), (f)-[:TO]->(bos), (ua)-[:OPERATES]->(f)
"""


def columns(*names):
    return tuple(ColumnMapping(name) for name in names)


def typed_mapping(created_at=None, relation_time=None):
    return GraphMapping(
        (
            NodeMapping("Flight", "id", columns("hour", "day", "note"), created_at),
            NodeMapping("Airport", "faa", columns("name", "altitude")),
            NodeMapping("Carrier", "code", columns("at")),
        ),
        (
            RelationMapping(0, "FROM", 1, created_at=relation_time),
            RelationMapping(0, "TO", 1, created_at=relation_time),
            RelationMapping(2, "OPERATES", 0, created_at=relation_time),
        ),
        "status",
        "zoned",
    )


class Case:
    def __init__(self, graph, folder: Path, mapping=None):
        self.graph, self.folder = graph, folder
        self.mapping = mapping or typed_mapping()
        self.seen: dict[str, int] = {}
        self.check_nodes = 0

    def read(self, *, whole=False, save=True):
        reader = GraphReader(
            self.graph, self.mapping, self.folder, 1000, 5.0, check_nodes=self.check_nodes,
            first_seen=lambda keys: {key: self.seen[key] for key in keys if key in self.seen},
        )  # fmt: skip
        found = sync_mirror(reader, whole=whole)
        self.seen |= found.first_seen
        if save:
            mirrors.save(found.mirror, self.folder)
        return found


@pytest.fixture
def case(connected, tmp_path):
    connected.run(FLIGHTS)
    return Case(connected, tmp_path / "mirror")


def as_graph(typed):
    """All that a mirror holds, whatever the numbers of its rows."""
    keys = list(typed.keys)
    source, target, kind = typed.edges
    edges = {
        (keys[a], keys[b], k)
        for a, b, k in zip(source.tolist(), target.tolist(), kind.tolist(), strict=True)
    }
    nodes = {}
    for label in range(len(typed.tables)):
        rows = typed.rows_of_label(label)  # without the gaps that deleted nodes left
        values = typed.columns(label, rows)
        for at, row in enumerate(rows.tolist()):
            nodes[keys[row]] = (label, {name: column[at] for name, column in values.items()})
    return nodes, edges


def assert_same_as_whole(case, found):
    again = case.read(whole=True, save=False)
    assert as_graph(found.mirror) == as_graph(again.mirror)


def test_the_first_read_brings_all_labels_with_their_raw_columns(case):
    found = case.read()
    nodes, edges = as_graph(found.mirror)
    assert nodes["i:1"] == (0, {"hour": 1, "day": dt.date(2013, 1, 2), "note": None})
    assert nodes["@1:s:JFK"] == (1, {"name": "Kennedy", "altitude": 13})
    point = nodes["@2:s:UA"][1]["at"]
    assert (point, point.srid) == (RawPoint(4326, (1.5, 2.5)), 4326)
    assert ("i:1", "@1:s:JFK", 0) in edges
    assert ("@2:s:UA", "i:6", 2) in edges
    assert len(edges) == 18
    mirror = found.mirror
    assert mirror.evaluated.tolist() == [label != 0 for label in found.mirror.labels]
    assert found.rebuilt == "first read"
    assert set(found.first_seen) == {f"i:{i}" for i in range(1, 7)}


def test_a_key_not_yet_known_is_new_and_context_it_names_comes_with_it(case):
    case.read()
    case.graph.run(
        "CREATE (f:Flight {id: 7, hour: 23})-[:TO]->(:Airport {faa: 'SFO', name: 'San'}) "
        "WITH f MATCH (c:Carrier) CREATE (c)-[:OPERATES]->(f)"
    )
    found = case.read()
    assert found.rebuilt == ""
    assert [found.mirror.keys[row] for row in found.new_rows] == ["i:7"]
    assert found.new_edges == 2
    assert list(found.first_seen) == ["i:7"]
    assert "7 keys scanned" in found.note
    assert_same_as_whole(case, found)
    assert len(case.read().new_rows) == 0


def test_large_context_is_read_by_the_keys_that_new_relationships_name(case, monkeypatch):
    monkeypatch.setattr(append, "MAX_NODES_READ_AGAIN", 1)
    case.read()
    case.graph.run(
        "CREATE (:Flight {id: 7})-[:TO]->(:Airport {faa: 'SFO'}) CREATE (:Airport {faa: 'XXX'})"
    )
    found = case.read()
    assert found.mirror.find(["@1:s:SFO", "@1:s:XXX"])[0] >= 0
    assert found.mirror.find(["@1:s:XXX"])[0] < 0  # nobody hears it yet
    assert found.rebuilt == ""


def test_large_context_of_a_late_relationship_comes_when_all_of_them_are_read_again(
    case, monkeypatch
):
    monkeypatch.setattr(append, "MAX_NODES_READ_AGAIN", 1)
    case.read()
    case.graph.run("MATCH (f:Flight {id: 1}) CREATE (f)-[:TO]->(:Airport {faa: 'SFO'})")
    found = case.read()
    assert "read all relationships again ((:Flight)-[:TO]->(:Airport))" in found.note
    assert_same_as_whole(case, found)
    assert "counts differed" not in case.read().note


def test_relationships_of_context_without_a_key_are_a_gap_that_is_noted_once(case, monkeypatch):
    monkeypatch.setattr(append, "MAX_NODES_READ_AGAIN", 1)
    case.graph.run("MATCH (f:Flight {id: 1}) CREATE (f)-[:TO]->(:Airport {name: 'nameless'})")
    assert case.read().mirror.gaps == {0: 0, 1: 1, 2: 0}
    assert "counts differed" not in case.read().note
    case.graph.run("MATCH (f:Flight {id: 2}) CREATE (f)-[:TO]->(:Airport {name: 'another'})")
    found = case.read()
    assert ("counts differed" in found.note, found.mirror.gaps[1]) == (True, 2)
    assert "counts differed" not in case.read().note


SHARED = """
UNWIND range(1, 4) AS i
CREATE (u:User {id: i, at: datetime()}), (c:Company {id: i}), (k:Car {id: i}), (h:House {id: i})
WITH *, datetime('2024-01-01T00:00:00Z') AS old
CREATE (u)-[:OWNS {at: old}]->(k), (c)-[:OWNS {at: old}]->(h), (u)-[:RENTS]->(h)
"""


def test_deletions_of_a_type_between_other_labels_are_no_difference(connected, tmp_path):
    """A type with two pairs of labels: the counts of one see what the other's deletions take."""
    connected.run(SHARED)
    nodes = [NodeMapping(label, "id") for label in ("Company", "Car", "House")]
    mapping = GraphMapping(
        (NodeMapping("User", "id", (), "at"), *nodes),
        (RelationMapping(0, "OWNS", 2, created_at="at"),
         RelationMapping(1, "OWNS", 3, created_at="at"), RelationMapping(0, "RENTS", 3)),
        "class", "zoned",
    )  # fmt: skip
    case = Case(connected, tmp_path, mapping)
    case.read()
    case.read()
    connected.run("MATCH (c:Company {id: 1}) DETACH DELETE c")
    found = case.read()
    assert "1 nodes of the context label Company were deleted" in found.note
    assert "read all relationships again" not in found.note
    assert_same_as_whole(case, found)
    connected.run("MATCH (:Company {id: 2})-[r:OWNS]->() DELETE r")
    found = case.read()
    assert "read all relationships again" in found.note
    assert_same_as_whole(case, found)
    assert "counts differed" not in case.read().note


def test_small_context_that_changed_is_read_again_and_its_row_revised(case):
    before = case.read()
    version = before.mirror.version
    case.graph.run("MATCH (a:Airport {faa: 'BOS'}) SET a.altitude = 19")
    found = case.read()
    row = int(found.mirror.find(["@1:s:BOS"])[0])
    assert found.mirror.columns(1, np.array([row])) == {"name": ["Logan"], "altitude": [19]}
    assert np.flatnonzero(found.mirror.revised > version).tolist() == [row]


def test_a_late_relationship_without_a_time_shows_in_the_counts(case):
    case.read()
    case.graph.run("MATCH (f:Flight {id: 1}), (a:Airport {faa: 'BOS'}) CREATE (f)-[:FROM]->(a)")
    found = case.read()
    assert "read all relationships again ((:Flight)-[:FROM]->(:Airport))" in found.note
    assert_same_as_whole(case, found)


def test_a_deleted_relationship_shows_in_the_counts(case):
    case.read()
    case.graph.run("MATCH (:Flight {id: 1})-[r:TO]->() DELETE r")
    found = case.read()
    assert "read all relationships again" in found.note
    assert_same_as_whole(case, found)


@pytest.mark.parametrize("pattern", ["(n:Flight {id: 6})", "(n:Airport {faa: 'BOS'})"])
def test_a_deleted_node_leaves_a_gap_and_nothing_else_is_read_again(case, pattern):
    before = case.read().mirror
    case.graph.run(f"MATCH {pattern} DETACH DELETE n")
    found = case.read()
    assert "1 nodes" in found.note
    assert "deleted" in found.note
    assert "relationships again" not in found.note
    assert (found.rebuilt, found.mirror.epoch) == ("", before.epoch)
    assert_same_as_whole(case, found)


def test_many_deletions_end_in_a_compaction_and_no_whole_read(case, monkeypatch):
    monkeypatch.setattr(compaction, "MIN_ROWS_TO_COMPACT", 0)
    before = case.read().mirror
    case.graph.run("MATCH (n) WHERE n.id IN [2, 4] OR n.faa = 'BOS' DETACH DELETE n")
    found = case.read()
    assert (found.rebuilt, found.mirror.epoch) == ("", before.epoch)
    monkeypatch.setattr(sync, "read_whole", None)  # nobody may ask for it
    found = case.read()
    assert (found.rebuilt, found.mirror.present.all()) == ("", True)
    assert found.mirror.epoch != before.epoch
    monkeypatch.undo()
    assert_same_as_whole(case, found)


def test_a_deleted_node_of_large_context_shows_in_the_count(case, monkeypatch):
    monkeypatch.setattr(append, "MAX_NODES_READ_AGAIN", 1)
    case.read()
    case.graph.run("MATCH (n:Airport {faa: 'BOS'}) DETACH DELETE n")
    found = case.read()
    assert "1 nodes of the context label Airport were deleted" in found.note
    assert_same_as_whole(case, found)


def test_a_key_that_comes_again_is_another_node_when_its_time_is_later(connected, tmp_path):
    connected.run(FLIGHTS)
    connected.run("MATCH (f:Flight) SET f.written = datetime.realtime()")
    case = Case(connected, tmp_path, typed_mapping("written"))
    before = case.read().mirror.find(["i:1"])
    connected.run("MATCH (f:Flight {id: 1}) DETACH DELETE f")
    connected.run(
        "MATCH (a:Airport {faa: 'JFK'}) "
        "CREATE (:Flight {id: 1, hour: 99, written: datetime.realtime()})-[:TO]->(a)"
    )
    found = case.read()
    assert found.mirror.find(["i:1"]) > before
    assert found.new_rows.tolist() == found.mirror.find(["i:1"]).tolist()
    assert_same_as_whole(case, found)


def test_a_node_keeps_when_it_was_first_seen_though_the_mirror_is_lost(case, tmp_path):
    first = case.read()
    times = dict(zip(first.mirror.keys, first.mirror.created_ns.tolist(), strict=True))
    case.folder = tmp_path / "another"
    again = case.read()
    now = dict(zip(again.mirror.keys, again.mirror.created_ns.tolist(), strict=True))
    assert now["i:1"] == times["i:1"]
    assert again.first_seen == {}


def test_a_node_without_a_key_waits_in_quarantine_and_joins_when_it_has_one(case):
    case.read()
    case.graph.run("CREATE (:Flight {hour: 9})-[:TO]->(:Airport {name: 'nameless'})")
    found = case.read()
    assert [bad.reason for bad in found.mirror.rejected.values()] == ["the key is missing"]
    assert found.mirror.context_rejected[1] == 1
    case.graph.run("MATCH (f:Flight) WHERE f.id IS NULL SET f.id = 77")
    found = case.read()
    assert not found.mirror.rejected
    assert found.mirror.find(["i:77"])[0] >= 0


def test_values_of_every_kind_are_kept_and_a_wrong_one_is_missing(connected, tmp_path):
    values = {
        "a": "datetime('2013-01-01T05:00:00.123456789+02:00')",
        "b": "localdatetime('2013-01-01T05:00:00')",
        "c": "time('05:00:00+01:00')",
        "d": "duration({months: 1, days: 2, seconds: 3})",
        "e": "[1.5, 2.5]",
        "f": "['x', 'y']",
        "g": "true",
        "h": "date('+10000-01-01')",
        "i": "0.0 / 0.0",
        "j": "[date('2013-01-01')]",
    }
    body = ", ".join(f"{name}: {value}" for name, value in values.items())
    connected.run(f"CREATE (:Thing {{id: 'x', {body}}}) CREATE (:Thing {{id: 'y'}})")
    mapping = GraphMapping((NodeMapping("Thing", "id", columns(*values)),), (), "class", "zoned")
    found = Case(connected, tmp_path, mapping).read()
    saved = Case(connected, tmp_path, mapping).read()
    assert saved.rebuilt == ""
    for typed in (found.mirror, saved.mirror):
        row = typed.find(["s:x"])
        read = {name: value[0] for name, value in typed.columns(0, row).items()}
        zone = dt.timezone(dt.timedelta(hours=2))
        assert read["a"] == dt.datetime(2013, 1, 1, 5, 0, 0, 123456, zone)
        assert read["b"] == dt.datetime(2013, 1, 1, 5)
        assert read["c"] == dt.time(5, tzinfo=dt.timezone(dt.timedelta(hours=1)))
        assert read["d"] == RawDuration(1, 2, 3, 0)
        assert (read["e"], read["f"], read["g"], read["h"]) == ([1.5, 2.5], ["x", "y"], True, None)
        assert np.isnan(read["i"])
        assert read["j"] == [dt.date(2013, 1, 1)]
        empty = typed.columns(0, typed.find(["s:y"]))
        assert all(value == [None] for value in empty.values())


def test_equal_keys_of_a_label_are_refused(case):
    case.graph.run("CREATE (:Airport {faa: 'JFK'})")
    with pytest.raises(GraphError, match="3 :Airport nodes have only 2 different keys"):
        case.read()


def test_without_nodes_of_the_classified_label_there_is_nothing_to_read(case):
    case.graph.run("MATCH (f:Flight) DETACH DELETE f")
    with pytest.raises(GraphError, match="no :Flight nodes"):
        case.read()


def test_a_context_label_that_vanishes_is_said_and_the_rest_is_read(case):
    case.read()
    case.graph.run("MATCH (c:Carrier) DETACH DELETE c")
    found = case.read()
    assert "no node carries the label Carrier" in found.note
    assert found.mirror.count(2) == 0


def test_creation_times_are_the_watermark_as_with_one_label(connected, tmp_path):
    connected.run(FLIGHTS)
    connected.run("MATCH (f:Flight) SET f.written = datetime.realtime()")
    connected.run("MATCH ()-[r]->() SET r.written = datetime.realtime()")
    case = Case(connected, tmp_path, typed_mapping("written", "written"))
    first = case.read()
    assert first.first_seen == {}
    connected.run(
        "MATCH (a:Airport {faa: 'JFK'}) "
        "CREATE (:Flight {id: 7, written: datetime.realtime()})"
        "-[:FROM {written: datetime.realtime()}]->(a)"
    )
    found = case.read()
    assert (found.rebuilt, len(found.new_rows), found.new_edges) == ("", 1, 1)
    assert_same_as_whole(case, found)
    connected.run("CREATE (:Flight {id: 8, written: datetime('2001-01-01T00:00:00Z')})")
    found = case.read()  # older than the watermark: the count shows it
    assert found.mirror.find(["i:8"])[0] >= 0
    connected.run(
        "MATCH (f:Flight {id: 8}), (a:Airport {faa: 'JFK'}) "
        "CREATE (f)-[:TO {written: datetime('2001-01-01T00:00:00Z')}]->(a)"
    )
    found = case.read()
    assert "read all relationships again" in found.note
    assert_same_as_whole(case, found)


def test_a_slice_finds_changed_properties_and_exchanged_relationships(case):
    case.read()
    case.check_nodes = 100
    case.graph.run("MATCH (f:Flight {id: 2}) SET f.note = 'changed'")
    case.graph.run(
        "MATCH (f:Flight {id: 1})-[r:TO]->(), (g:Flight {id: 3})-[s:TO]->(), (j {faa: 'JFK'}) "
        "DELETE r CREATE (g)-[:TO]->(j)"
    )
    found = case.read()
    assert "1 nodes had changed; 1 relationships were missing and 1 deleted" in found.note
    assert_same_as_whole(case, found)


def test_a_slice_finds_rows_that_are_gone_though_the_counts_agree(case):
    case.check_nodes = 100
    connected = case.graph
    connected.run("MATCH (f:Flight) SET f.written = datetime.realtime()")
    case.mapping = typed_mapping("written")
    case.read()
    connected.run("MATCH (f:Flight {id: 1}) DETACH DELETE f")
    connected.run("CREATE (:Flight {id: 9, written: datetime.realtime()})")
    found = case.read()
    assert "1 nodes were deleted" in found.note
    assert found.rebuilt == ""
    assert_same_as_whole(case, found)


STEPS = (
    "CREATE (:Flight {id: $new, hour: $n})",
    "MATCH (a:Airport) WITH a ORDER BY a.faa SKIP $n % 2 LIMIT 1 "
    "CREATE (:Flight {id: $new})-[:TO]->(a)",
    "CREATE (:Flight {id: $new})-[:FROM]->(:Airport {faa: 'A' + $new})",
    "MATCH (f:Flight), (a:Airport) WITH f, a ORDER BY f.id, a.faa SKIP $n LIMIT 1 "
    "CREATE (f)-[:TO]->(a)",
    "MATCH ()-[r:FROM|TO|OPERATES]->() WITH r ORDER BY elementId(r) SKIP $n LIMIT 1 DELETE r",
    "MATCH (f:Flight) WITH f ORDER BY f.id SKIP $n % 4 LIMIT 1 SET f.note = 'n' + $new",
    "MATCH (a:Airport) WITH a ORDER BY a.faa LIMIT 1 SET a.altitude = $new",
    "MATCH (f:Flight) WITH f ORDER BY f.id SKIP $n % 4 LIMIT 1 DETACH DELETE f",
    "MATCH (a:Airport) WITH a ORDER BY a.faa SKIP $n % 3 LIMIT 1 DETACH DELETE a",
    "MATCH (f:Flight) WITH f, f.id AS id ORDER BY id SKIP $n % 4 LIMIT 1 DETACH DELETE f "
    "CREATE (:Flight {id: id, hour: -1})",
    "MERGE (a:Airport {faa: 'JFK'}) SET a.name = 'again' + $n",
    "CREATE (:Flight {hour: $n})-[:TO]->(:Airport)",
    "MATCH (f:Flight) WHERE f.id IS NULL WITH f LIMIT 1 SET f.id = 1000000 + $new",
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_reading_what_is_new_equals_reading_all_after_whatever_happened(case, seed):
    rng = np.random.default_rng(seed)
    case.check_nodes = 1000  # every row: properties of the classified label show in no count
    case.read()
    for step in range(8):
        for place in rng.integers(0, len(STEPS), int(rng.integers(1, 4))).tolist():
            new = 10_000 * (seed + 1) + 100 * step + int(rng.integers(100))
            case.graph.run(
                f"OPTIONAL MATCH (known:Flight {{id: $new}}) WITH known WHERE known IS NULL "
                f"CALL () {{ {STEPS[place]} }}",
                new=new,
                n=int(rng.integers(20)),
            )
        found = case.read()
        assert found.rebuilt == ""
        assert_same_as_whole(case, found)


def test_hostile_names_and_values_are_only_names_and_values(connected, tmp_path):
    label, type_, key, column = "A`b\\u0060", "R`) DELETE (n", "k'\"", "c]\n{0}"
    connected.write(
        lambda tx: tx.run(
            "UNWIND range(1, 3) AS i CREATE (a:$($label)) SET a[$key] = 'x\\u0000' + i, "
            "a[$column] = ['1e400', 'NaN', '\\u2028'][i - 1] CREATE (a)-[:$($type)]->(a)",
            label=label, type=type_, key=key, column=column,
        ).consume()
    )  # fmt: skip
    connected.run(f"MATCH (n) SET n.`{key}` = replace(n.`{key}`, '\\u0000', '')")
    node = NodeMapping(label, key, columns(column))
    mapping = GraphMapping((node,), (RelationMapping(0, type_, 0),), "class", "zoned")
    found = Case(connected, tmp_path, mapping).read()
    rows = found.mirror.find(["s:x1", "s:x2", "s:x3"])
    assert found.mirror.columns(0, rows) == {column: ["1e400", "NaN", "\u2028"]}
    assert found.mirror.edge_count == 3
