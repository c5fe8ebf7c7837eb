"""Which configured group (a region, a product) each evaluated node belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, insert

from ringfence.connector.graph import Graph
from ringfence.connector.keys import decode_key, encode_key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.quoting import quote
from ringfence.connector.runs import BLOCK, Writer
from ringfence.connector.tables import grouping

LONGEST = 200  # characters of a group's value; what is longer is cut


def groups_of(
    graph: Graph, mapping: GraphMapping, properties: Sequence[str], keys: Sequence[str]
) -> list[dict[str, str]]:
    """Return rows of node_key, property and value for those that have one."""
    key = quote(mapping.key)
    values = ", ".join(f"n.{quote(name)}" for name in properties)
    rows = graph.read(
        f"UNWIND $keys AS key MATCH (n:{quote(mapping.label)} {{{key}: key}}) "
        f"RETURN n.{key} AS key, [{values}] AS groups",
        keys=[decode_key(one) for one in keys],
    )
    return [
        {"node_key": encode_key(row["key"]), "property": name, "value": _text(value)}
        for row in rows
        for name, value in zip(properties, row["groups"], strict=True)
        if value is not None
    ]


def record_groups(writer: Writer, rows: Sequence[dict[str, str]]) -> None:
    """Write groups beside the predictions; what a crash left half-way is replaced."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        writer.begin(connection)
        for start in range(0, len(rows), BLOCK):
            part = [{**row, "project": project} for row in rows[start : start + BLOCK]]
            keys = {row["node_key"] for row in part}
            connection.execute(
                delete(grouping).where(grouping.c.project == project, grouping.c.node_key.in_(keys))
            )
            connection.execute(insert(grouping), part)


def _text(value: Any) -> str:
    return str(value).replace("\x00", "")[:LONGEST]
