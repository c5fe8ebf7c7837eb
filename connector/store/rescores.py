"""Later evaluations of nodes, kept apart from predictions: no guarantee, in no coverage row."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert

from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import Prediction
from ringfence.connector.store import chain
from ringfence.connector.store.predictions import payload_digest
from ringfence.connector.store.rows import set_columns
from ringfence.connector.store.tables import rescore
from ringfence.connector.store.writer import Writer


def record_rescores(
    writer: Writer, model: str, alpha: float, reason: str, predictions: Sequence[Prediction]
) -> int:
    """Write the later evaluations and a chain entry; return the time they carry."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        connection.execute(
            insert(rescore),
            [
                {
                    "project": project,
                    "node_key": prediction.node_key,
                    "at_ns": now,
                    "reason": reason,
                    "model": model,
                    "alpha": alpha,
                    **set_columns(prediction),
                }
                for prediction in predictions
            ],
        )
        facts: JsonObject = {
            "reason": reason,
            "nodes": len(predictions),
            "predictions": payload_digest(predictions),
            "rescored_ns": now,
            "model": model,
            "alpha": alpha,
        }
        chain.append(connection, project, writer.key, "rescored", facts)
    return now
