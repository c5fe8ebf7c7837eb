"""The configured group properties (a region, a product) of nodes, as the graph has them now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringfence.connector.keys import decode_key, encode_key, typed_key_of
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.records import NodeGroup

MAX_VALUE_CHARS = 200  # of a group's value; what is longer is cut

GROUPS = """
UNWIND $keys AS key MATCH (n:{label} {{{key}: key}})
RETURN n.{key} AS key, [{values}] AS groups
"""


def node_groups(
    graph: Graph, mapping: GraphMapping, properties: Sequence[str], keys: Sequence[str]
) -> list[NodeGroup]:
    """Return the groups of those of `keys` that have one, for each of the properties.

    `keys` are the record's, and each node's number stays with it.
    """
    query = GROUPS.format(
        label=quote(mapping.classified.label),
        key=quote(mapping.classified.key),
        values=", ".join(f"n.{quote(name)}" for name in properties),
    )
    rows = graph.read(query, keys=[decode_key(key) for key in keys])
    given = {typed_key_of(key): key for key in keys}
    return [
        NodeGroup(given[encode_key(row["key"])], name, _text(value))
        for row in rows
        for name, value in zip(properties, row["groups"], strict=True)
        if value is not None
    ]


def _text(value: Any) -> str:
    return str(value).replace("\x00", "")[:MAX_VALUE_CHARS]
