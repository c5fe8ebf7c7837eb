"""A first read that is killed goes on where it was, and ends as an undisturbed one."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import RelationMapping, map_one_label
from ringfence.connector.mirror import CLASSIFIED, Mirror
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read import properties, streams, sync
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from tests.connector.neo4j.read.forms import (
    FORMS,
    ONE_LABEL,
    SEVERAL_LABELS,
    add_context,
    contents,
    in_form,
    node_keys,
)
from tests.connector.neo4j.read.forms import (
    properties as properties_of,
)

ROOT = Path(__file__).resolve().parents[4]
NODES, CONTEXT_NODES = 40, 3
MAPPING = map_one_label(
    label="Thing", key="id", features="x", class_property="class",
    created_at="created_at", time_kind="zoned",
    relations=(
        RelationMapping(0, "LINKS", 0, created_at="created_at"),
        RelationMapping(0, "KNOWS", 0),
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
from ringfence.connector.neo4j.read import streams
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from tests.connector.neo4j.read.forms import in_form
from tests.connector.neo4j.read.test_resume import MAPPING, without_times

streams.MIN_NODES_FOR_STREAMS = 0  # two streams
uri, user, password, form, folder, what, stop = sys.argv[1:]

def progress(now, done, _all):
    if now.endswith(what) and done >= int(stop):
        print("here", flush=True)
        time.sleep(600)

graph = connect(uri, user, password)
mapping = in_form(form, MAPPING)
if what.startswith("timeless "):
    what, mapping = what.removeprefix("timeless "), without_times(mapping)
sync_mirror(GraphReader(graph, mapping, Path(folder), 4, 0.0, progress, part_seconds=0.0))
"""


@pytest.fixture(autouse=True)
def two_streams(monkeypatch):
    monkeypatch.setattr(streams, "MIN_NODES_FOR_STREAMS", 0)


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


UNUSABLE = {
    ONE_LABEL: "{id: 'bad', x: [1.0], created_at: datetime()}",
    SEVERAL_LABELS: "{id: 'bad', x: [1.0], created_at: 'yesterday'}",
}


@pytest.fixture
def filled(graph, form):
    graph.run(FILL, nodes=NODES)
    add_context(form, graph)
    graph.run(f"CREATE (:Thing {UNUSABLE[form]})")
    graph.run("CREATE (:Thing {x: [1.0, 2.0], created_at: datetime()})")
    return graph


@pytest.fixture
def reader(filled, tmp_path, form):
    opened = connect(filled.uri, *filled.auth)
    yield GraphReader(opened, in_form(form, MAPPING), tmp_path / "mirror", 4, overlap_seconds=0.0)
    opened.close()


def kill_a_read(reader, graph, what, stop):
    """A process of its own reads until `what` has come to `stop` rows, and is killed there.

    Progress is told before a block is saved: the block at which it stands is lost.
    """
    form = ONE_LABEL if len(reader.mapping.nodes) == 1 else SEVERAL_LABELS
    where = [graph.uri, *graph.auth, form, str(reader.folder), what, str(stop)]
    command = [sys.executable, "-c", CHILD, *where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout.readline() == b"here\n"
        child.kill()
    assert child.returncode == -9


def described(mirror):
    """All that the mirror knows, by key."""
    names = [*mirror.class_names, None]
    classes = {
        key: names[index] for key, index in zip(mirror.keys, mirror.classes.tolist(), strict=True)
    }
    rejected = {(bad.element_id, bad.reason) for bad in mirror.rejected.values()}
    untimed = {index: count for index, count in mirror.raw_counts.items() if index > 0}
    counts = mirror.edge_count, mirror.relationship_count, untimed, mirror.gaps
    return contents(mirror), classes, rejected, mirror.context_rejected, counts


def undisturbed(reader, tmp_path):
    fresh = GraphReader(reader.graph, reader.mapping, tmp_path / "fresh", 100, 0.0)
    return sync_mirror(fresh).mirror


@pytest.fixture
def nodes_read(monkeypatch):
    """The keys of nodes of the classified label as they are read with all their properties."""
    seen = []
    of_features, of_columns = properties.node_block, properties.raw_block

    def record_features(width, ids, keys, *columns):
        seen.extend(keys)
        return of_features(width, ids, keys, *columns)

    def record_columns(label, ids, keys, *columns):
        seen.extend(keys if label == CLASSIFIED else [])
        return of_columns(label, ids, keys, *columns)

    monkeypatch.setattr(properties, "node_block", record_features)
    monkeypatch.setattr(properties, "raw_block", record_columns)
    return seen


@pytest.mark.parametrize(
    ("what", "stop", "had", "lost"),
    [("nodes", 4, 0, 42), ("nodes", 20, 16, 26), ("relationships", 4, 40, 2),
     ("relationships", 60, 40, 2)],
)  # fmt: skip
def test_a_killed_first_read_goes_on_with_what_it_lacks(
    filled, reader, tmp_path, nodes_read, what, stop, had, lost
):
    kill_a_read(reader, filled, what, stop)
    found = sync_mirror(reader)
    if what == "relationships" and len(reader.mapping.nodes) > 1:
        had += CONTEXT_NODES
    told = r"first read(?:, continued: (\d+) nodes had been read before it was interrupted)?"
    number = re.fullmatch(told, found.rebuilt)[1]
    assert (number is not None) == bool(had)
    assert had - 2 <= int(number or 0) <= had  # two that can't be used may be among the first
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
    kill_a_read(reader, filled, "relationships", 4)
    assert sync_mirror(reader).rebuilt == "first read"
    assert len(nodes_read) == NODES + 2


def test_relationships_of_nodes_left_out_would_be_seen_missing(
    filled, reader, tmp_path, monkeypatch
):
    """Another: the comparison with an undisturbed read does tell."""
    monkeypatch.setattr(Mirror, "anchors_left", lambda *_: [])
    kill_a_read(reader, filled, "relationships", 4)
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


def without_times(mapping):
    """The same mapping where new nodes are keys not yet known."""
    node, *context = mapping.nodes
    return replace(mapping, nodes=(replace(node, created_at=None), *context))


@pytest.mark.parametrize("form", [SEVERAL_LABELS], indirect=True)
def test_nodes_without_times_are_seen_first_by_the_attempt_that_was_killed(
    filled, reader, tmp_path
):
    kill_a_read(reader, filled, "timeless relationships", 30)
    reader.mapping = without_times(reader.mapping)
    filled.run("CREATE (:Thing {id: 99, x: [0.0, 1.0]})")
    found = sync_mirror(reader)
    assert "continued" in found.rebuilt
    times = dict(zip(found.mirror.keys, found.mirror.created_ns.tolist(), strict=True))
    assert found.first_seen == {key: times[key] for key in node_keys(found.mirror)}
    began = {times[f"i:{i}"] for i in range(1, NODES + 1)}
    assert began == {times["i:99"]}  # both attempts are one read


@pytest.mark.parametrize("case", MEANWHILE)
def test_what_changed_between_death_and_the_next_read_is_seen(filled, reader, tmp_path, case):
    statement, continued = MEANWHILE[case]
    kill_a_read(reader, filled, "relationships", 30)
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
    assert properties_of(found.mirror)["i:1"] == [7.0, 7.0]
    assert not (reader.folder / mirrors.PART).exists()


def test_a_torn_part_is_not_continued(filled, reader, form):
    kill_a_read(reader, filled, "relationships", 30)
    (written,) = reader.folder.glob("*/features" if form == ONE_LABEL else "*/raw.0.text")
    raw = bytearray(written.read_bytes())
    raw[5] ^= 1
    written.write_bytes(bytes(raw))
    found = sync_mirror(reader)
    assert found.rebuilt == "first read"
    assert len(properties_of(found.mirror)) == NODES
