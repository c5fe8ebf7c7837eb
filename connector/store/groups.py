"""Which configured group (a region, a product) each evaluated node belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from ringfence.connector.json_types import JsonObject, JsonValue
from ringfence.connector.records import NodeGroup
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.key_salt import FIELD as SALTED
from ringfence.connector.store.audit_chain.key_salt import current_salt, salted_facts
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.tables import grouping, prediction
from ringfence.connector.store.writer import Writer


def record_groups(writer: Writer, keys: Sequence[str], groups: Sequence[NodeGroup]) -> None:
    """Write the groups of the nodes `keys`; rows left by a crash are replaced."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        writer.begin(connection)
        for block in split(keys):
            before = grouping.c.node_key.in_(block)
            connection.execute(delete(grouping).where(grouping.c.project == project, before))
        for part in split(groups):
            connection.execute(
                insert(grouping),
                [
                    {
                        "project": project,
                        "node_key": group.node_key,
                        "property": group.property,
                        "value": group.value,
                    }
                    for group in part
                ],
            )


def seal_groups(connection: Connection, writer: Writer, seq: int) -> None:
    """Seal the groups of a run in the chain once they are complete, in the caller's transaction.

    A run without any group has no entry.
    """
    project = writer.lease.project
    groups = groups_of_run(connection, project, seq)
    if groups:
        salt = current_salt(connection, project)
        rows: list[tuple[str, list[JsonValue]]] = [
            (group.node_key, [group.property, group.value]) for group in groups
        ]
        facts: JsonObject = {
            "seq": seq,
            "rows": len(groups),
            "groups": groups_digest(groups),
            SALTED: salted_facts(salt, "groups", rows),
        }
        chain.append(connection, project, writer.key, "grouped", facts)


def groups_of_run(connection: Connection, project: str, seq: int) -> list[NodeGroup]:
    """Return the groups of the nodes that a run evaluated."""
    same = (grouping.c.project == prediction.c.project) & (
        grouping.c.node_key == prediction.c.node_key
    )
    query = (
        select(grouping.c.node_key, grouping.c.property, grouping.c.value)
        .join(prediction, same)
        .where(prediction.c.project == project, prediction.c.seq == seq)
    )
    return [NodeGroup(*row) for row in connection.execute(query)]


def groups_digest(groups: Sequence[NodeGroup]) -> str:
    """Return one hash over groups, in the order of keys and properties."""
    digest = hashlib.sha256()
    for group in sorted(groups, key=lambda group: (group.node_key, group.property)):
        digest.update(dumps([group.node_key, group.property, group.value]).encode())
    return digest.hexdigest()
