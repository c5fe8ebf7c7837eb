"""Neighbours of one node: both directions, each once, by key, and never the node itself."""

import pytest

from ringfence.connector.mapping import RelationMapping, map_one_label
from ringfence.connector.neo4j.neighbours import Neighbour, neighbours_of


def mapping(*types):
    relationships = tuple(RelationMapping(0, name, 0) for name in types)
    return map_one_label("Any", "id", "f", "kind", "at", "zoned", relationships)


@pytest.fixture
def star(connected):
    connected.run(
        "CREATE (n:Any {id: 7})-[:PAID]->(:Any {id: 3, kind: 'mule'}), (n)-[:PAID]->(n), "
        "(n)<-[:PAID]-(two:Any {id: 2}), (n)-[:PAID]->(two), (n)-[:PAID]->(:Any), "
        "(n)-[:PAID]->(:Other {id: 1}), (n)-[:`a``b`]->(:Any {id: 'x', kind: 5})"
    )
    return connected


def test_each_neighbour_comes_once_in_the_order_of_keys_with_its_class(star):
    assert neighbours_of(star, mapping("PAID"), "i:7", 10) == [
        Neighbour("2", "i:2", None),
        Neighbour("3", "i:3", "mule"),
    ]
    every = neighbours_of(star, mapping("PAID", "a`b"), "i:7", 10)
    assert Neighbour("x", "s:x", "5") in every
    assert len(every) == 3


def test_no_more_come_than_were_asked_for_and_none_without_a_type_or_a_node(star):
    assert len(neighbours_of(star, mapping("PAID"), "i:7", 1)) == 1
    assert neighbours_of(star, mapping(), "i:7", 10) == []
    assert neighbours_of(star, mapping("PAID"), "s:7", 10) == []  # text is another key than 7
