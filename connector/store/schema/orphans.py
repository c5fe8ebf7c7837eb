"""Rows about nodes that were never evaluated: where foreign keys are off, SQL lets them stand."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from ringfence.connector.store.tables import grouping, prediction, shadow_set

TABLES_READ_BY_NODE = (shadow_set, grouping)
"""Tables that other checks read beside the predictions, so that they miss rows without one."""


def count_orphans(connection: Connection, project: str) -> dict[str, int]:
    """Return how many rows of a project have no prediction, by table; none are left out."""
    counts = {}
    for table in TABLES_READ_BY_NODE:
        owner = select(prediction.c.seq).where(
            prediction.c.project == table.c.project, prediction.c.node_key == table.c.node_key
        )
        query = (
            select(func.count())
            .select_from(table)
            .where(table.c.project == project, ~owner.exists())
        )
        counts[table.name] = int(connection.execute(query).scalar_one())
    return {name: count for name, count in counts.items() if count}
