"""A first read that is killed goes on where it was, and ends as an undisturbed one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import GraphMapping, RelationshipMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read import full, incremental, sync
from ringfence.connector.neo4j.read.sync import GraphReader, sync_mirror

ROOT = Path(__file__).resolve().parents[4]
NODES = 40
MAPPING = GraphMapping(
    label="Thing", key="id", features=("x",), features_are_list=True, class_property="class",
    created_at="created_at", time_kind="zoned",
    relationships=(
        RelationshipMapping("LINKS", created_at="created_at"),
        RelationshipMapping("KNOWS"),
    ),
)  # fmt: skip
FILL = """
UNWIND range(1, $nodes) AS i
CREATE (n:Thing {id: i, x: [i / 2.0, -i], class: 'c' + (i % 3),
  created_at: datetime('2024-01-01T00:00:00Z') + duration({hours: i})})
WITH collect(n) AS all
UNWIND range(0, $nodes - 1) AS i
WITH all[i] AS a, all[(i * 7 + 3) % $nodes] AS b, all[(i * 5 + 1) % $nodes] AS c
CREATE (a)-[:LINKS {created_at: a.created_at}]->(b), (a)-[:KNOWS]->(c)
"""
CHILD = """
import sys, time
from pathlib import Path
from ringfence.connector.neo4j.read import full
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.sync import GraphReader, sync_mirror
from tests.connector.neo4j.read.test_resume import MAPPING

full.MIN_NODES_FOR_STREAMS = 0  # two streams
uri, user, password, folder, what, stop = sys.argv[1:]

def progress(now, done, _all):
    if now == what and done >= int(stop):
        print("here", flush=True)
        time.sleep(600)

graph = connect(uri, user, password)
sync_mirror(GraphReader(graph, MAPPING, Path(folder), 4, 0.0, progress, part_seconds=0.0))
"""


@pytest.fixture(autouse=True)
def two_streams(monkeypatch):
    monkeypatch.setattr(full, "MIN_NODES_FOR_STREAMS", 0)


@pytest.fixture
def filled(graph):
    graph.run(FILL, nodes=NODES)
    graph.run("CREATE (:Thing {id: 'bad', x: [1.0], created_at: datetime()})")
    graph.run("CREATE (:Thing {x: [1.0, 2.0], created_at: datetime()})")
    return graph


@pytest.fixture
def reader(filled, tmp_path):
    opened = connect(filled.uri, *filled.auth)
    yield GraphReader(opened, MAPPING, tmp_path / "mirror", rows=4, overlap_seconds=0.0)
    opened.close()


def kill_a_read(graph, folder, what, stop):
    """A process of its own reads until `what` has come to `stop` rows, and is killed there.

    Progress is told before a block is saved: the block at which it stands is lost.
    """
    command = [sys.executable, "-c", CHILD, graph.uri, *graph.auth, str(folder), what, str(stop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout.readline() == b"here\n"
        child.kill()
    assert child.returncode == -9


def described(mirror):
    """All that the mirror knows, by key."""
    names = [*mirror.class_names, None]
    nodes = {
        key: (mirror.features[row].tolist(), names[mirror.classes[row]], mirror.created_ns[row])
        for row, key in enumerate(mirror.keys)
    }
    source, target, kind = mirror.edges.tolist()
    keys = list(mirror.keys)
    edges = {(keys[a], keys[b], k) for a, b, k in zip(source, target, kind, strict=True)}
    rejected = {(one.element_id, one.reason) for one in mirror.rejected.values()}
    return nodes, edges, rejected, mirror.edge_count, mirror.relationship_count


def undisturbed(reader, tmp_path):
    return sync_mirror(GraphReader(reader.graph, MAPPING, tmp_path / "fresh", 100, 0.0)).mirror


@pytest.fixture
def nodes_read(monkeypatch):
    """The keys of nodes as they are read with all their properties."""
    seen = []
    original = incremental.node_block

    def record(width, ids, keys, *columns):
        seen.extend(keys)
        return original(width, ids, keys, *columns)

    monkeypatch.setattr(incremental, "node_block", record)
    return seen


@pytest.mark.parametrize(
    ("what", "stop", "had", "lost"),
    [("nodes", 4, 0, 42), ("nodes", 20, 16, 26), ("relationships", 4, 40, 2),
     ("relationships", 60, 40, 2)],
)  # fmt: skip
def test_a_killed_first_read_goes_on_with_what_it_lacks(
    filled, reader, tmp_path, nodes_read, what, stop, had, lost
):
    kill_a_read(filled, reader.folder, what, stop)
    found = sync_mirror(reader)
    assert ("continued" in found.rebuilt) == bool(had)
    assert len(nodes_read) <= lost + 2 * 2  # two in quarantine, which are read once more
    assert found.new_rows.tolist() == list(range(NODES))
    mirrors.save(found.mirror, reader.folder)
    assert not (reader.folder / mirrors.PART).exists()
    assert described(found.mirror) == described(undisturbed(reader, tmp_path))
    again = sync_mirror(reader)
    assert again.rebuilt == ""
    assert described(again.mirror) == described(found.mirror)


def test_without_the_saved_part_everything_is_read_again(filled, reader, nodes_read, monkeypatch):
    """The negative control of the test before."""
    monkeypatch.setattr(sync, "MAX_PART_AGE_SECONDS", 0.0)
    kill_a_read(filled, reader.folder, "relationships", 4)
    assert sync_mirror(reader).rebuilt == "first read"
    assert len(nodes_read) == NODES + 2


def test_relationships_of_nodes_left_out_would_be_seen_missing(
    filled, reader, tmp_path, monkeypatch
):
    """Another: the comparison with an undisturbed read does tell."""
    monkeypatch.setattr(Mirror, "sources_left", lambda _mirror, _index: [])
    kill_a_read(filled, reader.folder, "relationships", 4)
    assert described(sync_mirror(reader).mirror) != described(undisturbed(reader, tmp_path))


MEANWHILE = {
    "a new node with relationships": (
        "MATCH (a:Thing {id: 1}) CREATE (n:Thing {id: 99, x: [0.0, 1.0], created_at: datetime()}) "
        "CREATE (a)-[:LINKS {created_at: datetime()}]->(n), (a)-[:KNOWS]->(n)",
        True,
    ),
    "a backdated node": (
        "CREATE (:Thing {id: 98, x: [0.0, 1.0], created_at: datetime('2024-01-01T05:00:00Z')})",
        True,
    ),
    "a new relationship": (
        "MATCH (a:Thing {id: 1}), (b:Thing {id: 2}) "
        "CREATE (a)-[:LINKS {created_at: datetime()}]->(b)",
        True,
    ),
    "a deleted node": ("MATCH (n:Thing {id: 2}) DETACH DELETE n", False),
    "one deleted, one backdated": (
        "MATCH (n:Thing {id: 2}) DETACH DELETE n "
        "CREATE (:Thing {id: 98, x: [0.0, 1.0], created_at: datetime('2024-01-01T05:00:00Z')})",
        False,
    ),
    "a deleted relationship": ("MATCH (:Thing {id: 1})-[r:LINKS]->() DELETE r", False),
}


@pytest.mark.parametrize("case", MEANWHILE)
def test_what_changed_between_death_and_the_next_read_is_seen(filled, reader, tmp_path, case):
    statement, continued = MEANWHILE[case]
    kill_a_read(filled, reader.folder, "relationships", 30)
    filled.run(statement)
    found = sync_mirror(reader)
    assert ("continued" in found.rebuilt) == continued
    assert described(found.mirror) == described(undisturbed(reader, tmp_path))


def test_a_whole_read_that_was_asked_for_begins_from_nothing(filled, reader, nodes_read):
    mirrors.save(sync_mirror(reader).mirror, reader.folder)
    filled.run("MATCH (n:Thing {id: 1}) SET n.x = [7.0, 7.0]")
    nodes_read.clear()
    found = sync_mirror(reader, whole=True)
    assert len(nodes_read) == NODES + 2
    assert found.mirror.features[found.mirror.find(["i:1"])[0]].tolist() == [7.0, 7.0]
    assert not (reader.folder / mirrors.PART).exists()


def test_a_torn_part_is_not_continued(filled, reader):
    kill_a_read(filled, reader.folder, "relationships", 30)
    (features,) = reader.folder.glob("*/features")
    raw = bytearray(features.read_bytes())
    raw[5] ^= 1
    features.write_bytes(bytes(raw))
    found = sync_mirror(reader)
    assert found.rebuilt == "first read"
    assert np.isfinite(found.mirror.features).all()
