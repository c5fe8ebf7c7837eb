"""Later looks at nodes, kept apart from predictions: no guarantee, in no coverage row."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert

from ringfence.connector import chain
from ringfence.connector.runs import Prediction, Writer, payload_digest
from ringfence.connector.store import dumps
from ringfence.connector.tables import rescore


def record_rescores(
    writer: Writer, model: str, alpha: float, reason: str, looks: Sequence[Prediction]
) -> int:
    """Write the looks and a chain entry; return the time they carry."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        connection.execute(
            insert(rescore),
            [
                {
                    "project": project,
                    "node_key": one.node_key,
                    "at_ns": now,
                    "reason": reason,
                    "model": model,
                    "alpha": alpha,
                    "classes": dumps(one.classes),
                    "p_values": dumps(one.p_values),
                    "scores": dumps(one.scores),
                }
                for one in looks
            ],
        )
        facts = {"reason": reason, "nodes": len(looks), "predictions": payload_digest(looks)}
        chain.append(connection, project, writer.key, "rescored", facts)
    return now
