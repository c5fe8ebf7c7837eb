"""Properties of nodes as texts, for pages: bounded, whatever the graph holds."""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.connector.keys import decode_key, encode_key, typed_key_of
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote

MAX_PROPERTIES = 60
MAX_VALUE_CHARS = 200
TEXT = """CASE WHEN valueType({value}) STARTS WITH 'LIST' THEN toString(size({value})) + ' values'
  ELSE left(toStringOrNull({value}), $chars) END"""

ONE_NODE = """
MATCH (n:{label} {{{key}: $key}}) WITH n LIMIT 1
UNWIND keys(n) AS name
WITH name, n[name] AS value ORDER BY name LIMIT $most
RETURN name, {text} AS text
"""
SEVERAL_NODES = """
UNWIND $keys AS key MATCH (n:{label} {{{key}: key}})
RETURN key, [name IN $names | {text}] AS texts
"""


def properties_of(graph: Graph, mapping: GraphMapping, typed_key: str) -> list[tuple[str, str]]:
    """Return names and values of a classified node's properties, by name; lists by their length."""
    label = mapping.classified
    query = ONE_NODE.format(
        label=quote(label.label), key=quote(label.key), text=TEXT.format(value="value")
    )
    rows = graph.read(
        query,
        key=decode_key(typed_key_of(typed_key)),
        most=MAX_PROPERTIES,
        chars=MAX_VALUE_CHARS,
    )
    return [(str(row["name"]), str(row["text"])) for row in rows if row["text"] is not None]


def values_of(
    graph: Graph, mapping: GraphMapping, typed_keys: Sequence[str], names: Sequence[str]
) -> dict[str, list[str | None]]:
    """Return the named properties of classified nodes as texts, by typed key."""
    label = mapping.classified
    query = SEVERAL_NODES.format(
        label=quote(label.label), key=quote(label.key), text=TEXT.format(value="n[name]")
    )
    keys = [decode_key(typed_key_of(typed_key)) for typed_key in typed_keys]
    rows = graph.read(query, keys=keys, names=list(names), chars=MAX_VALUE_CHARS)
    return {encode_key(row["key"]): list(row["texts"]) for row in rows}
