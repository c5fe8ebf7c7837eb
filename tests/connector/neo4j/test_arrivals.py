"""The times of arrival that the advisor reads, also where some can't be used."""

import pytest

from ringfence.connector.mapping import RelationMapping, map_one_label
from ringfence.connector.neo4j.arrivals import read_arrivals
from ringfence.connector.neo4j.classes import classes_since
from tests.connector.neo4j.read.test_accounting import FILL, mapping_of

OUT_OF_RANGE = "datetime('2300-01-01T00:00:00Z')"


@pytest.mark.parametrize("odd", ["'yesterday'", OUT_OF_RANGE, "17"])
def test_odd_times_of_nodes_and_relationships_end_no_audit(graph, connected, odd):
    graph.run(FILL)
    graph.run(f"MATCH (n:Thing {{id: 5}}) SET n.created_at = {odd}")
    graph.run(f"MATCH (:Thing {{id: 7}})-[r:LINKS]->() SET r.created_at = {odd}")
    arrivals = read_arrivals(connected, mapping_of(timed=True))
    assert len(arrivals.node_time) == 99
    assert (arrivals.edge_time < 1_800_000_000_000_000_000).all()


def test_edges_keep_their_own_times_and_nodes_their_classes(graph, connected):
    graph.run(FILL)
    graph.run("MATCH (n:Thing) WHERE n.id < 10 SET n.class = toString(n.id % 2)")
    graph.run("MATCH (:Thing {id: 7})-[r:LINKS]->() SET r.created_at = datetime('2031-01-01')")
    arrivals = read_arrivals(connected, mapping_of(timed=True))
    assert arrivals.edge_time.max() > arrivals.node_time.max()  # not moved to its later end
    assert sorted({*arrivals.classes.tolist()}) == [-1, 0, 1]


def test_a_class_with_a_time_out_of_range_is_known_without_one(graph, connected):
    graph.run(f"CREATE (:Thing {{id: 1, class: 'a', known_at: {OUT_OF_RANGE}}})")
    kinds = (RelationMapping(0, "LINKS", 0, None),)
    mapping = map_one_label("Thing", "id", "x", "class", "created_at", "zoned", kinds)
    (known,) = classes_since(connected, mapping, "p", "known_at", 0, 10)
    assert (known["i:1"].known.class_, known["i:1"].known.happened_ns) == ("a", None)
