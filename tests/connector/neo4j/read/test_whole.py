"""A whole read in two streams: every node once, in one order, also while others write."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.read import id_ranges, nodes, streams
from ringfence.connector.neo4j.read.nodes import LabelReader
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.streams import Share, shares
from ringfence.connector.neo4j.read.sync import sync_mirror
from ringfence.connector.neo4j.read.vectors import cypher_prefix
from ringfence.connector.neo4j.read.whole import read_all_relations
from ringfence.connector.neo4j.times import ns_expression
from tests.connector.neo4j.read import test_watermark as writers
from tests.connector.neo4j.read.forms import FORMS, add_context, in_form
from tests.connector.neo4j.read.things import FILL, MAPPING

ROWS = 7
GAPS = "MATCH (n:Thing) WHERE n.id % 3 = 0 OR n.id < 40 DETACH DELETE n"
KEPT = sorted(f"i:{i}" for i in range(40, 200) if i % 3)


@pytest.fixture(autouse=True)
def two_streams(monkeypatch):
    monkeypatch.setattr(streams, "MIN_NODES_FOR_STREAMS", 0)


@pytest.fixture(params=FORMS)
def gappy(graph, connected, tmp_path, request):
    """A reader of nodes between those of another label, many of them gone."""
    graph.run(FILL)
    graph.run(GAPS)
    add_context(request.param, graph)
    mapping = in_form(request.param, MAPPING)
    return GraphReader(connected, mapping, tmp_path, rows=ROWS, overlap_seconds=0.0)


def keys_of(blocks):
    return [key for block in blocks for key in block.keys]


def label_of(reader):
    return LabelReader(reader.graph, reader.mapping, 0, ROWS, width=2)


def read_keys(reader):
    return keys_of(label_of(reader).read_all(200))


def read_links(reader):
    """Relationships as two streams bring them, by relation and the keys of their ends."""
    mirror = mirrors.create(reader.folder, "unused", 2)
    mirror.first_read.at_targets = (False,) * len(reader.mapping.relations)
    pairs = []
    for block, step in read_all_relations(reader, mirror, [200, 200]):
        if block.type_index >= len(MAPPING.relations):
            continue  # of context
        assert step == block.type_index  # all of them are read at their sources
        sources = np.repeat(np.array(block.sources, np.int64), block.counts).tolist()
        pairs += [(block.type_index, *ends) for ends in zip(sources, block.targets, strict=True)]
    return pairs


def test_every_node_and_relationship_is_read_once(gappy, monkeypatch):
    assert len(shares(gappy.graph, 200)) == 2
    keys, links = read_keys(gappy), read_links(gappy)
    assert sorted(keys) == KEPT
    assert len(set(links)) == len(links) > 100
    monkeypatch.setattr(streams, "MIN_NODES_FOR_STREAMS", 10**9)  # and so in one stream
    assert len(shares(gappy.graph, 200)) == 1
    assert sorted(read_keys(gappy)) == KEPT
    assert set(read_links(gappy)) == set(links)


@pytest.mark.parametrize(
    "condition",
    ["WHERE id(n) / $rows % $streams >= $stream", "WHERE id(n) / $rows % ($streams + 1) = $stream"],
)
def test_shares_that_overlap_or_leave_a_gap_would_show(gappy, monkeypatch, condition):
    """The negative control of the test before."""
    monkeypatch.setattr(streams, "IN_SHARE", condition)
    assert sorted(read_keys(gappy)) != KEPT


def test_an_unchanged_graph_is_read_in_one_order(gappy):
    keys, links = read_keys(gappy), read_links(gappy)
    for _ in range(5):
        assert read_keys(gappy) == keys
        assert read_links(gappy) == links
    streams = [keys_of(share_of(gappy, number)) for number in (0, 1)]
    assert all(streams)
    assert keys != streams[0] + streams[1]  # in turn, not one after the other


@pytest.mark.parametrize("form", FORMS)
def test_ids_without_gaps_come_in_their_order(graph, connected, tmp_path, form):
    graph.run("UNWIND range(1, 3000) AS i CREATE (:Spare)")
    ids = {row["i"] for row in graph.run("MATCH (n:Spare) RETURN id(n) AS i")}
    runs = (range(i, i + 70) for i in ids if i % (2 * ROWS) == 0)  # from the first stream's stripe
    row = next(run for run in runs if ids >= set(run))
    graph.run(
        "MATCH (n:Spare) WHERE id(n) IN $ids "
        "SET n:Thing, n += {id: id(n), x: [1.0, 2.0], created_at: datetime()}",
        ids=list(row),
    )
    reader = GraphReader(connected, in_form(form, MAPPING), tmp_path, ROWS, 0.0)
    assert read_keys(reader) == [f"i:{i}" for i in row]


def share_of(reader, number):
    return label_of(reader).read_share(Share(number, 2))


CHANGE = "MATCH (n:Thing) WHERE n.id IN [40, 41, 43, 44, 46, 47, 49, 50, 52, 53] DETACH DELETE n"
NEW = """
UNWIND range(900, 930) AS i
CREATE (:Thing {id: i, x: [1.0, 2.0], created_at: datetime()})
"""
LEFT = [key for key in KEPT if int(key.removeprefix("i:")) > 53]


def test_what_is_written_between_the_streams_starts_moves_no_node(graph, gappy):
    first = share_of(gappy, 0)
    keys = next(first).keys
    graph.run(CHANGE)
    graph.run(NEW)
    keys += keys_of([*first, *share_of(gappy, 1)])
    assert [key for key in sorted(keys) if key in LEFT] == LEFT


def test_every_other_block_of_a_list_would_lose_nodes(graph):
    """The negative control: shares by place, as the list was and as it is."""
    graph.run(FILL)
    graph.run(GAPS)
    listed = "MATCH (n:Thing) WITH collect(n.id) AS ids RETURN ids"

    def share(number):
        ids = graph.run(listed)[0]["ids"]
        return {i for at, i in enumerate(ids) if at // ROWS % 2 == number}

    before = share(0)
    graph.run(CHANGE)
    keys = {f"i:{i}" for i in before | share(1)}
    assert set(LEFT) - keys


@pytest.mark.parametrize("number", [0, 1])
def test_an_error_in_either_stream_surfaces_and_leaves_nothing_open(
    graph, gappy, number, monkeypatch
):
    monkeypatch.setattr(nodes, "checked_ns_expression", ns_expression)  # a number has no year
    bad = keys_of(share_of(gappy, number))[ROWS + 1]
    spoil = "MATCH (n:Thing {id: $id}) SET n.created_at = $value"
    graph.run(spoil, id=int(bad.removeprefix("i:")), value=5)
    with pytest.raises(GraphError, match="refused a statement"):
        read_keys(gappy)
    left = graph.run("SHOW TRANSACTIONS YIELD currentQuery WHERE currentQuery CONTAINS 'Thing' "
                     "AND NOT currentQuery STARTS WITH 'SHOW' RETURN currentQuery")  # fmt: skip
    assert left == []
    assert len(keys_of(share_of(gappy, 1 - number))) > ROWS  # the other one was fine
    graph.run("MATCH (n:Thing) SET n.created_at = datetime()")
    assert sorted(read_keys(gappy)) == KEPT


def test_a_stream_that_nobody_closes_would_be_seen_open(graph, gappy):
    """The negative control of the test before."""
    blocks = share_of(gappy, 0)
    next(blocks)
    open_ = graph.run("SHOW TRANSACTIONS YIELD currentQuery WHERE currentQuery CONTAINS 'Thing' "
                      "AND NOT currentQuery STARTS WITH 'SHOW' RETURN currentQuery")  # fmt: skip
    blocks.close()
    assert len(open_) == 1


def test_a_graph_is_read_in_one_stream_where_it_is_small_or_nodes_have_no_ids(gappy, monkeypatch):
    assert shares(gappy.graph, 5) == [Share(0, 2), Share(1, 2)]
    monkeypatch.setattr(streams, "HAS_IDS", "RETURN idOfTomorrow(null)")
    assert shares(gappy.graph, 5) == [Share(0, 1)]
    assert sorted(read_keys(gappy)) == KEPT
    monkeypatch.undo()
    assert shares(gappy.graph, streams.MIN_NODES_FOR_STREAMS - 1) == [Share(0, 1)]
    assert len(shares(gappy.graph, streams.MIN_NODES_FOR_STREAMS)) == 2
    monkeypatch.setattr(streams, "usable_cores", lambda: 1)
    assert shares(gappy.graph, streams.MIN_NODES_FOR_STREAMS) == [Share(0, 1)]


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_first_reads_beside_twenty_late_writers_lose_nothing(graph, connected, tmp_path, form):
    graph.run("CREATE CONSTRAINT FOR (n:Late) REQUIRE n.id IS UNIQUE")
    graph.run("CREATE INDEX FOR (n:Late) ON (n.created_at)")
    graph.run(writers.CREATE % "realtime", ids=[0])
    stop, written, threads = threading.Event(), [[0]], []
    for number in range(20):
        written.append([])
        arguments = (graph, 1 + number * 10_000_000, stop, written[-1])
        threads.append(threading.Thread(target=writers.write, args=arguments))
        threads[-1].start()
    mapping = replace(in_form(form, writers.MAPPING), relations=())  # nodes alone
    readers = [GraphReader(connected, mapping, tmp_path / str(i), 20, 5.0) for i in range(6)]
    first = []
    for reader in readers:
        threading.Event().wait(0.5)
        found = sync_mirror(reader).mirror
        mirrors.save(found, reader.folder)
        first.append(set(found.keys))
        assert len(first[-1]) == found.size
    stop.set()
    for thread in threads:
        thread.join()
    everything = {f"i:{number}" for numbers in written for number in numbers}
    for reader, seen in zip(readers, first, strict=True):
        caught = sync_mirror(reader)
        assert set(caught.mirror.keys) == everything
        assert caught.rebuilt == ""  # by the watermark of the first read, not by counting
        assert everything - seen  # that first read alone wasn't all


def ranges_of(reader, expected):
    return label_of(reader).ranges(expected)


def test_a_large_label_is_read_in_ranges_of_ids_and_every_node_once(gappy, monkeypatch):
    keys, links = read_keys(gappy), read_links(gappy)
    assert len(ranges_of(gappy, 200)) == 1
    monkeypatch.setattr(id_ranges, "MAX_COLLECTED", 30)
    assert len(ranges_of(gappy, 200)) > 3
    assert sorted(read_keys(gappy)) == sorted(keys) == KEPT
    assert sorted(read_links(gappy)) == sorted(links)
    blocks = label_of(gappy).read_keys(200)
    assert sorted(f"i:{key}" for _, block in blocks for key in block) == KEPT
    assert sorted(keys_of(label_of(gappy).read_since(0, 200))) == KEPT


def test_ranges_that_leave_a_gap_would_show(gappy, monkeypatch):
    """The negative control of the test before."""
    monkeypatch.setattr(id_ranges, "MAX_COLLECTED", 30)
    ranges = ranges_of(gappy, 200)
    monkeypatch.setattr(nodes, "id_ranges", lambda *_: ranges[:-1])
    assert sorted(read_keys(gappy)) != KEPT


MANY = """
UNWIND range(0, 39999) AS i
CREATE (:Thing {id: i, x: [1.0], created_at: datetime('2024-01-01T00:00:00Z')})
"""


def profiled_bytes(graph, part):
    """Bytes that the server held for a query over one range, as its own profile says."""
    names = {"label": "Thing", "key": "id", "where": part.where()}
    query = f"{cypher_prefix(graph)} PROFILE {nodes.ALL_KEYS.format(**names)}"
    with graph.driver.session() as session:
        done = session.run(query, rows=1_000, **part.parameters).consume()
    return done.profile["args"]["GlobalMemory"]


def test_the_servers_memory_is_that_of_a_range_and_not_of_the_label(
    graph, connected, tmp_path, monkeypatch
):
    graph.run(MANY)
    reader = GraphReader(connected, MAPPING, tmp_path, ROWS, 0.0)
    (whole,) = ranges_of(reader, 40_000)
    monkeypatch.setattr(id_ranges, "MAX_COLLECTED", 2_500)
    held = [profiled_bytes(connected, part) for part in ranges_of(reader, 40_000)]
    assert max(held) * 4 < profiled_bytes(connected, whole)
