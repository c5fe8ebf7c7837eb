"""Neighbours of one node: both directions, each once, by key, and never the node itself."""

import pytest

from ringfence.connector.mapping import GraphMapping, NodeMapping, RelationMapping, map_one_label
from ringfence.connector.neo4j.queries import neighbours
from ringfence.connector.neo4j.queries.neighbours import Neighbour, neighbours_of
from ringfence.connector.neo4j.queries.node_values import properties_of, values_of


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
        Neighbour("2", "i:2", None, "", "PAID"),
        Neighbour("3", "i:3", "mule", "", "PAID"),
    ]
    every = neighbours_of(star, mapping("PAID", "a`b"), "i:7", 10)
    assert Neighbour("x", "s:x", "5", "", "a`b") in every
    assert len(every) == 3


def test_no_more_come_than_were_asked_for_and_none_without_a_type_or_a_node(star):
    assert len(neighbours_of(star, mapping("PAID"), "i:7", 1)) == 1
    assert neighbours_of(star, mapping(), "i:7", 10) == []
    assert neighbours_of(star, mapping("PAID"), "s:7", 10) == []  # text is another key than 7


SEVERAL = GraphMapping(
    (NodeMapping("Any", "id"), NodeMapping("De`vice", "na me"), NodeMapping("Shop", "id")),
    (RelationMapping(0, "USES", 1), RelationMapping(0, "PAYS", 2), RelationMapping(0, "PAID", 0)),
    "kind",
    "zoned",
)


@pytest.fixture
def hub(connected):
    connected.run(
        "CREATE (n:Any {id: 7, kind: 'mule', balance: 3.5, tags: ['a', 'b']}) "
        "CREATE (d:`De``vice` {`na me`: '<b>d1</b>', kind: 'no class'})<-[:USES]-(n) "
        "CREATE (d)<-[:USES]-(:Any {id: 8}) "
        "FOREACH (i IN range(100, 129) | CREATE (n)-[:PAID]->(:Any {id: i, kind: 'retail'})) "
        "CREATE (n)-[:PAYS]->(:Shop {id: 1}), (n)-[:PAYS]->(:Bank {id: 2}), "
        "(n)-[:OWNS]->(:Shop {id: 3})"
    )
    return connected


def test_neighbours_of_every_mapped_label_have_room_beside_those_of_a_hub(hub):
    around = neighbours_of(hub, SEVERAL, "i:7", 12)
    assert [one for one in around if one.label] == [
        Neighbour("<b>d1</b>", "s:<b>d1</b>", None, "De`vice", "USES"),
        Neighbour("1", "i:1", None, "Shop", "PAYS"),
    ]
    assert sum(one.class_ == "retail" for one in around) == 6
    assert len(neighbours_of(hub, SEVERAL, "i:7", 3)) == 3


def test_a_neighbour_of_another_label_is_opened_by_its_label_and_key(hub):
    around = neighbours_of(hub, SEVERAL, "s:<b>d1</b>", 10, "De`vice")
    assert [(one.typed_key, one.class_, one.label) for one in around] == [
        ("i:7", "mule", ""),
        ("i:8", None, ""),
    ]
    assert neighbours_of(hub, SEVERAL, "i:7", 10, "Bank") == []  # no mapped label


def test_of_a_hub_no_more_relationships_are_looked_at_than_allowed(hub, monkeypatch):
    monkeypatch.setattr(neighbours, "MAX_LOOKED_AT", 4)
    assert len(neighbours_of(hub, SEVERAL, "i:7", 50)) <= 4


def test_properties_come_as_bounded_texts(hub):
    assert dict(properties_of(hub, SEVERAL, "i:7")) == {
        "balance": "3.5", "id": "7", "kind": "mule", "tags": "2 values",
    }  # fmt: skip
    hub.run("MATCH (n:Any {id: 8}) SET n.long = $long, n.`<b>` = 1", long="x" * 5_000)
    told = dict(properties_of(hub, SEVERAL, "i:8"))
    assert len(told["long"]) == 200
    assert told["<b>"] == "1"
    assert properties_of(hub, SEVERAL, "i:999") == []


def test_chosen_properties_come_by_key_in_the_order_asked_for(hub):
    told = values_of(hub, SEVERAL, ["i:7", "i:8", "i:999"], ["kind", "balance", "none"])
    assert told == {"i:7": ["mule", "3.5", None], "i:8": [None, None, None]}
