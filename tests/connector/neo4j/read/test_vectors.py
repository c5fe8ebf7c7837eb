"""Features that arrive as vectors: the same nodes and the same reasons as with plain lists."""

import random

import numpy as np
import pytest
from neo4j.vector import Vector

from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import map_one_label
from ringfence.connector.neo4j import driver as connecting
from ringfence.connector.neo4j.driver import VECTORS
from ringfence.connector.neo4j.read import properties
from ringfence.connector.neo4j.read.columns import node_block
from ringfence.connector.neo4j.read.properties import feature_width
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror

MAPPING = map_one_label("Thing", "id", "x", "class", "created_at", "zoned", ())
COLUMNS = map_one_label("Thing", "id", ("a", "b"), "class", "created_at", "zoned", ())
TROUBLE = [
    [1.0, float("nan")], [float("-inf"), 1.0], [1e300, 0.0], [3.5e38, 0.0], [1.0], [1.0, 2.0, 3.0],
    [], ["a", "b"], [True, False], "text", 3.5, None, b"12", b"1234", [2**62, 1],
]  # fmt: skip


def things(graph, values, name="x"):
    rows = [{"id": i, name: value} for i, value in enumerate(values)]
    for row in rows:  # one by one: a list of rows would have to be of one type
        graph.run("CREATE (n:Thing {created_at: datetime()}) SET n += $row", row=row)


def read(connected, folder, mapping=MAPPING, rows=100):
    mirror = sync_mirror(GraphReader(connected, mapping, folder, rows, 0.0)).mirror
    nodes = dict(zip(mirror.keys, mirror.features.tolist(), strict=True))
    return nodes, {(one.node_key, one.reason) for one in mirror.rejected.values()}


@pytest.fixture
def arrived(connected, monkeypatch):
    """The types of what the server sent as features."""
    assert connected.has_vectors, connected.read(VECTORS)  # why not, where the server refuses
    types = []
    original = properties.unpacked

    def record(parts, width):
        types.extend(type(part) for part in parts)
        return original(parts, width)

    monkeypatch.setattr(properties, "unpacked", record)
    return types


def test_lists_of_floats_arrive_as_vectors_bit_by_bit(graph, connected, tmp_path, arrived):
    rng = np.random.default_rng(0)
    values = (rng.standard_normal((300, 30)) * 10.0 ** rng.integers(-40, 38, (300, 30))).tolist()
    values[7][:3] = [float(np.finfo(np.float32).max), 1e-50, -0.0]
    things(graph, values)
    nodes, rejected = read(connected, tmp_path)
    expected = np.array(values).astype(np.float32)
    found = np.array([nodes[f"i:{i}"] for i in range(300)], np.float32)
    assert expected.tobytes() == found.tobytes()
    assert rejected == set()
    assert set(arrived) == {Vector}
    assert len(arrived) == 3  # a block of 100 rows of 30 numbers fits one vector


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_blocks_with_trouble_keep_every_reason(graph, connected, tmp_path, arrived, is_shuffled):
    """The server gives nodes the ids of deleted ones, in an order of its own.

    So there are more blocks than nodes that can spoil one, whichever nodes come together.
    """
    usable = 2 * len(TROUBLE) + 2
    values = [[1.0, 2.0]] * usable + TROUBLE + [[3.0, 4.0]] * (5 * len(TROUBLE) - usable)
    if is_shuffled:
        random.Random(0).shuffle(values)
    things(graph, values)
    packed = read(connected, tmp_path / "packed", rows=5)
    assert {Vector, list} == set(arrived)
    connected.has_vectors = False  # as on a server that knows none
    assert packed == read(connected, tmp_path / "plain", rows=5)
    assert len(packed[1]) == len(TROUBLE) - 2  # flags and large integers are numbers


@pytest.mark.parametrize("value", [b"12", b"1234", b"12345678", [7, 8]])
def test_the_width_is_that_of_most_nodes_whichever_the_server_comes_to_first(
    graph, connected, tmp_path, arrived, value
):
    things(graph, [[1.0, 2.0]] * 10)
    first = "MATCH (n:Thing) WITH collect(n) AS all_ WITH all_[0] AS first SET first.x = $value"
    graph.run(first, value=value)
    assert feature_width(connected, MAPPING) == 2
    nodes, _ = read(connected, tmp_path, rows=2)
    assert len(nodes) >= 9
    assert Vector in arrived


def test_bytes_of_most_nodes_are_four_to_a_number_whichever_comes_first(graph, connected):
    things(graph, [b"12345678"] * 10)
    graph.run("MATCH (n:Thing) WITH collect(n) AS all_ WITH all_[0] AS first SET first.x = [1.0]")
    assert feature_width(connected, MAPPING) == 2


EDGE = 3.4028235677973366e38  # between the largest float32 and the next that there would be


@pytest.mark.parametrize("value", [EDGE, np.nextafter(EDGE, 0), -EDGE, -np.nextafter(EDGE, 0)])
def test_the_server_draws_the_line_at_32_bits_where_numpy_does(graph, connected, tmp_path, value):
    things(graph, [[1.0, 2.0], [0.5, float(value)]])
    packed = read(connected, tmp_path / "packed")
    connected.has_vectors = False
    assert packed == read(connected, tmp_path / "plain")
    assert len(packed[1]) == int(abs(value) == EDGE)


def test_numbers_are_looked_at_only_where_the_server_refused_to_pack(
    graph, connected, tmp_path, monkeypatch
):
    monkeypatch.setattr(properties, "CHECKED", "no Cypher at all")
    things(graph, [[1.0, 2.0]] * 10)
    assert len(read(connected, tmp_path / "a")[0]) == 10
    graph.run("CREATE (:Thing {id: 10, x: [1.0, 0.0 / 0.0], created_at: datetime()})")
    with pytest.raises(GraphError):
        read(connected, tmp_path / "b")
    monkeypatch.undo()
    nodes, rejected = read(connected, tmp_path / "c")
    assert (len(nodes), len(rejected)) == (10, 1)


def test_a_read_that_begins_again_counts_no_node_twice(graph, connected, tmp_path):
    things(graph, [[1.0, 2.0]] * 26)
    graph.run(  # the node that the server comes to last: those before it have been sent by then
        "MATCH (n:Thing) WITH collect(n) AS all_ WITH all_[-1] AS last "
        "SET last.x = [1.0, 0.0 / 0.0]"
    )
    seen = []
    reader = GraphReader(
        connected, MAPPING, tmp_path, 3, 0.0, lambda _what, done, all_: seen.append((done, all_))
    )
    mirror = sync_mirror(reader).mirror
    assert (mirror.size, len(set(mirror.keys)), len(mirror.rejected)) == (25, 25, 1)
    assert len(seen) > 26 / 3 + 1  # some blocks came twice
    assert max(done for done, _ in seen) == 26


def test_bytes_among_lists_would_pass_as_numbers_if_integers_were_packed(
    graph, connected, tmp_path, monkeypatch
):
    """The negative control: why stored lists of integers are left as they are."""
    things(graph, [[1.0, 2.0], [3.0, 4.0], b"12"])
    assert {reason for _, reason in read(connected, tmp_path / "a")[1]} == {
        "2 bytes of features; 8 are needed"
    }
    monkeypatch.setattr(properties, "STORED", properties.LISTED)
    assert read(connected, tmp_path / "b")[0]["i:2"] == [49.0, 50.0]


def test_several_properties_arrive_as_vectors_unless_one_is_missing(
    graph, connected, tmp_path, arrived
):
    for one in ({"id": 1, "a": 1, "b": 0.5}, {"id": 2, "a": 2**40, "b": -1}):
        graph.run("CREATE (n:Thing {created_at: datetime()}) SET n += $one", one=one)
    assert read(connected, tmp_path / "a", COLUMNS)[0] == {"i:1": [1, 0.5], "i:2": [2**40, -1]}
    assert set(arrived) == {Vector}
    graph.run("CREATE (n:Thing {created_at: datetime(), id: 3, a: 1})")
    assert read(connected, tmp_path / "b", COLUMNS)[1] == {("i:3", "a feature is missing")}


def test_features_wider_than_a_vector_are_read_as_lists(graph, connected, tmp_path, arrived):
    wide = np.arange(5000, dtype=np.float64)
    things(graph, [wide.tolist(), (wide + 0.5).tolist()])
    nodes, _ = read(connected, tmp_path)
    assert np.array_equal(nodes["i:1"], wide + 0.5)
    assert arrived == []


def test_a_server_that_knows_no_vectors_is_asked_once(graph, connected, tmp_path, monkeypatch):
    monkeypatch.setattr(connecting, "VECTORS", "CYPHER 5 RETURN vector([1.0], 1, FLOAT32) AS one")
    things(graph, [[1.0, 2.0]] * 7)
    assert not connected.has_vectors
    assert len(read(connected, tmp_path, rows=2)[0]) == 7


def test_stored_vectors_are_read_by_their_bytes(connected):
    """Community can't store vectors, but sends them as a property would come."""
    query = "CYPHER 25 RETURN [vector([1.5, -2], 2, FLOAT32), vector([3, 1e-3], 2, {kind})] AS x"
    ids, keys, nothing, ns = ["a", "b"], [1, 2], [None, None], [1, 2]
    for kind in ("FLOAT32", "FLOAT64"):
        (row,) = connected.read(query.format(kind=kind))
        block = node_block(2, ids, keys, row["x"], nothing, ns)
        assert np.array_equal(block.features, np.array([[1.5, -2], [3, 1e-3]], np.float32))
    (row,) = connected.read("CYPHER 25 RETURN [vector([7, 8], 2, INTEGER8), [1.0, 2.0]] AS x")
    assert node_block(2, ids, keys, row["x"], nothing, ns).features.tolist() == [[7, 8], [1, 2]]
    (row,) = connected.read(
        "CYPHER 25 RETURN [vector([7], 1, FLOAT32), vector([1e300, 0], 2, FLOAT64)] AS x"
    )
    assert [one.reason for one in node_block(2, ids, keys, row["x"], nothing, ns).rejected] == [
        "1 features; 2 are needed", "a feature is NaN, infinite or too large for 32 bits"
    ]  # fmt: skip


def test_the_width_is_that_of_most_lists(graph, connected):
    things(graph, [[1.0, 2.0], [1.0, 2.0], [1.0], "text"])
    assert feature_width(connected, MAPPING) == 2
