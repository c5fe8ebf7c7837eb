"""What counts can't show: deletions that cancel, and properties that changed, slice by slice."""

import re

import numpy as np
import pytest

from ringfence.connector import mirror as mirrors
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.sync import sync_mirror
from tests.connector.neo4j.read.forms import (
    FORMS,
    ONE_LABEL,
    SEVERAL_LABELS,
    add_context,
    in_form,
    inner_links,
    properties,
)
from tests.connector.neo4j.read.test_accounting import (
    ADD_NODES,
    FILL,
    OLD,
    assert_equals_graph,
    mapping_of,
    read,
)

SLICE = 30  # of 100 nodes: all are compared within four runs
RUNS = 4


UNIQUE_KEYS = (("Thing", "id"),)


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["timed", "untimed"])
def reader(graph, connected, tmp_path, request, form):
    graph.run(FILL)
    add_context(form, graph)
    mapping = in_form(form, mapping_of(timed=request.param))
    reader = GraphReader(
        connected, mapping, tmp_path, rows=1_000, overlap_seconds=1.0, check_nodes=SLICE
    )
    read(reader)
    read(reader)  # compares what the first read brought, as far as it fits
    return reader


def read_until_noted(reader):
    """The notes of all runs that compare every node once."""
    found = [read(reader) for _ in range(RUNS)]
    return found[-1], " ".join(one.note + one.rebuilt for one in found).strip()


def test_a_lone_node_deleted_while_a_backdated_one_came_is_found(graph, reader):
    graph.run("MATCH (n:Thing {id: 55})-[r]-() DELETE r")
    read(reader)
    graph.run("MATCH (n:Thing {id: 55}) DELETE n")
    graph.run(f"CREATE (:Thing {{id: 'late', x: [0.0, 0.0], created_at: {OLD}}})")
    found, said = read_until_noted(reader)
    assert "nodes were deleted" in said
    assert ("s:late" in found.mirror.keys, "i:55" in found.mirror.keys) == (True, False)
    assert_equals_graph(reader, found)


def test_without_slices_it_would_not_be(graph, reader):
    """The negative control of the test before: the counts cancel."""
    blind = replace_check(reader, 0)
    graph.run("MATCH (n:Thing {id: 55})-[r]-() DELETE r")
    read(blind)
    graph.run("MATCH (n:Thing {id: 55}) DELETE n")
    graph.run(f"CREATE (:Thing {{id: 'late', x: [0.0, 0.0], created_at: {OLD}}})")
    found, said = read_until_noted(blind)
    assert (said, "s:late" in found.mirror.keys) == ("", False)


def replace_check(reader, size):
    return GraphReader(reader.graph, reader.mapping, reader.folder, 1_000, 1.0, check_nodes=size)


def test_changed_features_classes_and_times_are_read_again(graph, reader):
    graph.run("MATCH (n:Thing {id: 40}) SET n.class = 'a'")
    read_until_noted(reader)
    graph.run("MATCH (n:Thing {id: 71}) SET n.x = [7.0, -7.0]")
    graph.run("MATCH (n:Thing {id: 3}) SET n.created_at = datetime('2023-03-03T00:00:00Z')")
    found, said = read_until_noted(reader)
    mirror = found.mirror
    assert "nodes had changed" in said
    values = properties(mirror)
    assert values.pop("i:71") == [7.0, -7.0]
    assert mirror.created_ns[mirror.find(["i:3"])[0]] == 1_677_801_600_000_000_000
    assert list(values.values()) == [[1.0, 2.0]] * 99
    assert_equals_graph(reader, found)


def test_what_was_computed_before_a_change_counts_as_old(graph, reader):
    before = sync_mirror(reader).mirror.version
    graph.run("MATCH (n:Thing) SET n.x = [7.0, -7.0]")
    mirror = read(replace_check(reader, 1_000)).mirror
    assert len(changed_since(mirror, before)) == 100
    identity, folder = mirror.identity, reader.folder
    del mirror
    kept = mirrors.load(folder, identity)  # and so after the next start
    assert len(changed_since(kept, before)) == 100
    assert list(properties(kept).values()) == [[7.0, -7.0]] * 100


def changed_since(mirror, version):
    """Rows whose properties the forward pass must not take from what it kept of a version."""
    if mirror.has_raw_columns:
        return np.flatnonzero(mirror.revised > version)
    rows, versions = mirror.patches.altered()
    return rows[versions > version]


def test_a_class_that_is_withdrawn_or_corrected_is_read_again(graph, reader, tmp_path):
    graph.run("MATCH (n:Thing) WHERE n.id < 50 SET n.class = 'a'")
    labelled = GraphReader(
        reader.graph, reader.mapping, tmp_path / "labelled", 1_000, 1.0, check_nodes=SLICE
    )
    read(labelled)
    graph.run("MATCH (n:Thing {id: 7}) SET n.class = 'b'")
    graph.run("MATCH (n:Thing {id: 8}) REMOVE n.class")
    graph.run("MATCH (n:Thing {id: 90}) SET n.class = 'a'")  # became known: no change
    found, said = read_until_noted(labelled)
    mirror = found.mirror
    names = [*mirror.class_names, None]
    classes = {key: names[mirror.classes[row]] for row, key in enumerate(mirror.keys)}
    assert (classes["i:7"], classes["i:8"], classes["i:9"]) == ("b", None, "a")
    # two rows, in one slice or in two: the server gives ids of deleted nodes out again
    changed = sum(int(count) for count in re.findall(r"(\d+) nodes had changed", said))
    assert (changed, classes["i:90"]) == (2, None)


@pytest.mark.parametrize(
    ("form", "change"),
    [
        (ONE_LABEL, "n.x = 'gone'"),
        (ONE_LABEL, "n.created_at = 'yesterday'"),
        (SEVERAL_LABELS, "n.created_at = 'yesterday'"),
    ],
)
def test_a_node_that_became_unusable_goes_to_quarantine(graph, reader, change):
    graph.run(f"MATCH (n:Thing {{id: 71}}) SET {change}")
    found, said = read_until_noted(reader)
    assert "can't be used any more" in said
    assert [bad.node_key for bad in found.mirror.rejected.values()] == ["i:71"]
    assert_equals_graph(reader, found)


def test_one_relationship_moved_between_old_nodes_is_found(graph, reader):
    graph.run("MATCH (:Thing {id: 20})-[r:LINKS]->() DELETE r")
    graph.run(
        "MATCH (a:Thing {id: 60}), (b:Thing {id: 61}) "
        f"CREATE (a)-[:LINKS {{created_at: {OLD}}}]->(b)"
    )
    found, said = read_until_noted(reader)
    one_slice_had_both = "1 relationships were missing and 1 deleted" in said
    assert one_slice_had_both or "all relationships were read again" in said
    assert ("i:60", "i:61", 0) in inner_links(found.mirror)
    assert_equals_graph(reader, found)


def test_relationships_exchanged_within_a_slice_are_exchanged_alone(graph, reader):
    read_until_noted(reader)
    graph.run("MATCH (:Thing {id: 20})-[r:LINKS]->() DELETE r")
    graph.run(
        "MATCH (a:Thing {id: 21}), (b:Thing {id: 60}) "
        f"CREATE (a)-[:LINKS {{created_at: {OLD}}}]->(b)"
    )
    before = sync_mirror(reader).mirror.version
    found = read(replace_check(reader, 1_000))
    assert "1 relationships were missing and 1 deleted" in found.note
    assert "read again" not in found.note
    assert np.count_nonzero(found.mirror.adjacency.changed > before) <= 4
    assert_equals_graph(reader, found)


def test_relationships_deleted_right_after_they_were_read_are_found_by_the_next_run(graph, reader):
    graph.run(ADD_NODES, ids=[1_000, 1_001, 1_002])
    read(reader)
    graph.run("MATCH (:Thing {id: 1000})-[r:LINKS]->() DELETE r")
    graph.run(ADD_NODES, ids=[1_003, 1_004])
    found = read(reader)
    assert len(inner_links(found.mirror)) == 104
    assert_equals_graph(reader, found)


def test_an_unchanged_graph_is_compared_without_a_word(reader):
    found, said = read_until_noted(reader)
    assert said == ""
    assert found.mirror.checked == (2 + RUNS - 1) * SLICE % found.mirror.size
