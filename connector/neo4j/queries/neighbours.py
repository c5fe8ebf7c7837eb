"""The neighbours of one node, of every mapped label, for the page that explains its set."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.keys import decode_key, encode_key, typed_key_of
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote

MAX_LOOKED_AT = 2_000  # relationships of a hub
LEAST_OF_A_LABEL = 6  # neighbours that each label has room for, however many others have

NEIGHBOURS = """
MATCH (n:{label} {{{key}: $key}}) WITH n LIMIT 1
MATCH (n)-[r:{types}]-(m) WHERE m <> n
WITH m, type(r) AS type LIMIT $looked
WITH m, min(type) AS relation, CASE WHEN $classified IN labels(m) THEN $classified
  ELSE head([x IN labels(m) WHERE x IN $labels]) END AS label
WHERE label IS NOT NULL
WITH label, m[$keys[label]] AS key, relation,
  CASE WHEN label = $classified THEN m.{class_} END AS class
WHERE key IS NOT NULL
WITH label, key, relation, class ORDER BY key
WITH label, collect([key, class, relation])[..$each] AS some
UNWIND some AS one
RETURN label, one[0] AS key, one[1] AS class, one[2] AS relation
ORDER BY label <> $classified, label, key LIMIT $limit
"""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour of a node: its key as text and typed, and its class if known.

    `label` is empty for nodes of the classified label; `relation` is one of the types between them.
    """

    key: str
    typed_key: str
    class_: str | None
    label: str = ""
    relation: str = ""


def neighbours_of(
    graph: Graph, mapping: GraphMapping, typed_key: str, limit: int, label: str = ""
) -> list[Neighbour]:
    """Return up to `limit` nodes that a mapped relationship joins to the node, by label and key.

    Which way a relationship points does not matter; a node without a key can't be named and is
    left out. The node is of the classified label, or of another mapped `label`. Each label has room
    for some, and of a hub so many relationships are looked at and no more.
    """
    places = {node.label: place for place, node in enumerate(mapping.nodes)}
    classified = mapping.classified
    place = places.get(label or classified.label)
    types = sorted({kind.type for kind in mapping.relations if place in (kind.source, kind.target)})
    if place is None or not types:
        return []
    query = NEIGHBOURS.format(
        label=quote(mapping.nodes[place].label),
        key=quote(mapping.nodes[place].key),
        types="|".join(quote(type_) for type_ in types),
        class_=quote(mapping.class_property),
    )
    rows = graph.read(
        query,
        key=decode_key(typed_key_of(typed_key)),
        looked=MAX_LOOKED_AT,
        classified=classified.label,
        labels=list(places),
        keys={node.label: node.key for node in mapping.nodes},
        each=limit if len(places) == 1 else max(LEAST_OF_A_LABEL, limit // len(places)),
        limit=limit,
    )
    return [
        Neighbour(
            str(row["key"]),
            encode_key(row["key"]),
            None if row["class"] is None else str(row["class"]),
            "" if row["label"] == classified.label else str(row["label"]),
            str(row["relation"]),
        )
        for row in rows
    ]
