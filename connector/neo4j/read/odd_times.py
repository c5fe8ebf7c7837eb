"""Relationships whose creation time can't be used: read all the same, and listed.

A relationship's time only says when to read it: one without a usable time shows in the counts, and
is read with all of its type. So it is in the mirror like any other; what makes it costly to find is
told with its keys and the value as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.connector.errors import GraphError
from ringfence.connector.keys import encode_key
from ringfence.connector.mapping import RelationshipMapping
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import MAX_SHOWN_CHARS
from ringfence.connector.neo4j.read.incremental import relationship_names
from ringfence.connector.neo4j.times import checked_ns_expression
from ringfence.connector.records import RejectedNode

if TYPE_CHECKING:
    from ringfence.connector.neo4j.read.sync import GraphReader

MAX_LISTED = 100  # of one type

ODD_TIMES = """
MATCH (a:{label})-[r:{type}]->(b:{label})
WITH a, r, b, r.{created} AS t
WITH a, r, b, {ns} AS ns
WHERE ns IS NULL OR NOT ns IS :: INTEGER
RETURN {found}
"""
COUNTED = "count(*) AS n"
LISTED = "elementId(r) AS id, a.{key} AS source, b.{key} AS target, ns LIMIT $most"


def find_odd_times(reader: GraphReader) -> tuple[list[RejectedNode], list[str]]:
    """Return relationships without a usable creation time, some of each type, and notes of all."""
    listed, notes = [], []
    for kind in reader.mapping.relationships:
        if kind.created_at is None:
            continue
        names = {
            **relationship_names(reader.mapping, kind),
            "created": quote(kind.created_at),
            "ns": checked_ns_expression(reader.mapping.time_kind, "t"),
        }
        n = int(reader.graph.read(ODD_TIMES.format(**names, found=COUNTED))[0]["n"])
        if not n:
            continue
        shown = ODD_TIMES.format(**names, found=LISTED.format(**names))
        rows = reader.graph.read(shown, most=MAX_LISTED)
        found = [_listed(kind, *row.values()) for row in rows]
        listed += found
        first = f", e.g. {found[0].node_key} {found[0].reason}" if found else ""
        notes.append(f"{n} {kind.type} without a usable time were read{first}")
    return listed, notes


def _listed(
    kind: RelationshipMapping, element_id: str, source: object, target: object, value: object
) -> RejectedNode:
    found = "missing" if value is None else f"of no use: {_shown(value)}"
    reason = f"-[{kind.type}]-> {_key(target)}: {kind.created_at} is {found}; read all the same"
    return RejectedNode(element_id, _key(source), reason, kind="relationship")


def _shown(value: object) -> str:
    return str(value).removesuffix(" NOT NULL").replace("\x00", "")[:MAX_SHOWN_CHARS]


def _key(value: object) -> str | None:
    try:
        return encode_key(value)
    except GraphError:
        return None
