"""Relationships whose creation time can't be used: read all the same, and listed.

A relationship's time only says when to read it: one without a usable time shows in the counts, and
is read with all of its type. So it is in the mirror like any other; since it is costly to find, it
is reported with its keys and the value as text.
"""

from __future__ import annotations

from ringfence.connector.errors import GraphError
from ringfence.connector.keys import encode_key
from ringfence.connector.mapping import RelationMapping
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import MAX_SHOWN_CHARS
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.times import checked_ns_expression
from ringfence.connector.records import RejectedNode

MAX_LISTED = 100  # of one relation

ODD_TIMES = """
MATCH (a:{source})-[r:{type}]->(b:{target})
WITH a, r, b, r.{created} AS t
WITH a, r, b, {ns} AS ns
WHERE ns IS NULL OR NOT ns IS :: INTEGER
RETURN {columns}
"""
COUNTED = "count(*) AS n"
LISTED = "elementId(r) AS id, a.{source_key} AS source, b.{target_key} AS target, ns LIMIT $most"


def find_odd_times(reader: GraphReader) -> tuple[list[RejectedNode], list[str]]:
    """Return relationships without a usable creation time, some of each type, and notes of all."""
    listed, notes = [], []
    for index in reader.timed_relations():
        relation = reader.mapping.relations[index]
        names = _names(reader, relation)
        n = int(reader.graph.read(ODD_TIMES.format(**names, columns=COUNTED))[0]["n"])
        if not n:
            continue
        query = ODD_TIMES.format(**names, columns=LISTED.format(**names))
        rows = reader.graph.read(query, most=MAX_LISTED)
        odd = [_listed(relation, *row.values()) for row in rows]
        listed += odd
        first = f", e.g. {odd[0].node_key} {odd[0].reason}" if odd else ""
        notes.append(f"{n} {relation.type} without a usable time were read{first}")
    return listed, notes


def _names(reader: GraphReader, relation: RelationMapping) -> dict[str, str]:
    nodes = reader.mapping.nodes
    source, target = nodes[relation.source], nodes[relation.target]
    return {
        "source": quote(source.label),
        "source_key": quote(source.key),
        "target": quote(target.label),
        "target_key": quote(target.key),
        "type": quote(relation.type),
        "created": quote(str(relation.created_at)),
        "ns": checked_ns_expression(reader.mapping.time_kind, "t"),
    }


def _listed(
    relation: RelationMapping, element_id: str, source: object, target: object, value: object
) -> RejectedNode:
    state = "missing" if value is None else f"of no use: {_shown(value)}"
    name = f"-[{relation.type}]-> {_key(target)}"
    reason = f"{name}: {relation.created_at} is {state}; read all the same"
    return RejectedNode(element_id, _key(source), reason, kind="relationship")


def _shown(value: object) -> str:
    return str(value).removesuffix(" NOT NULL").replace("\x00", "")[:MAX_SHOWN_CHARS]


def _key(value: object) -> str | None:
    try:
        return encode_key(value)
    except GraphError:
        return None
