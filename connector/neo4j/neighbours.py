"""The neighbours of one node, for the page that explains its set."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote

NEIGHBOURS = """
MATCH (n:{label} {{{key}: $key}})-[:{types}]-(m:{label}) WHERE m <> n
RETURN DISTINCT m.{key} AS key, m.{class_} AS class ORDER BY key LIMIT $limit
"""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour of a node: its key as text and typed, and its class if known."""

    key: str
    typed_key: str
    class_: str | None


def neighbours_of(
    graph: Graph, mapping: GraphMapping, typed_key: str, limit: int
) -> list[Neighbour]:
    """Return up to `limit` nodes that a mapped relationship joins to the node, by key.

    Which way a relationship points does not matter; a node without a key can't be named and is
    left out.
    """
    if not mapping.classified_relations:
        return []
    query = NEIGHBOURS.format(
        label=quote(mapping.classified.label),
        key=quote(mapping.classified.key),
        types="|".join(quote(kind.type) for kind in mapping.classified_relations),
        class_=quote(mapping.class_property),
    )
    rows = graph.read(query, key=decode_key(typed_key), limit=limit)
    return [
        Neighbour(
            str(row["key"]),
            encode_key(row["key"]),
            None if row["class"] is None else str(row["class"]),
        )
        for row in rows
        if row["key"] is not None
    ]
