"""The audit sample: nodes that a run drew by a keyed hash, marked in SQL and sealed with the run.

The draw is part of the transaction that decides the run, so it is on record before anyone can see a
set. The run's chain entry holds how many nodes were asked for and a digest of those drawn: whoever
swaps a node of the sample for one that is easier to cover changes the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, literal_column, update

from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.tables import prediction

IS_SAMPLED: ColumnElement[bool] = literal_column("prediction.sampled")
"""As the partial index has it: SQLite uses that for no other way to say the same."""


@dataclass(frozen=True, slots=True)
class AuditSample:
    """The nodes that a run drew; `asked` is `[audit] sample_nodes`, more than the run may have."""

    asked: int
    keys: tuple[str, ...]


NO_SAMPLE = AuditSample(0, ())


def mark_sampled(connection: Connection, project: str, sample: AuditSample) -> None:
    """Mark the drawn nodes inside the transaction that decides their run."""
    for part in split(sample.keys):
        connection.execute(
            update(prediction)
            .where(prediction.c.project == project, prediction.c.node_key.in_(part))
            .values(sampled=True)
        )


def sample_facts(sample: AuditSample) -> JsonObject:
    """Return what the run's chain entry holds of its sample."""
    return {
        "asked": sample.asked,
        "nodes": len(sample.keys),
        "keys": sample_digest(sample.keys),
    }


def sample_digest(keys: Iterable[str]) -> str:
    """Return one hash over the keys of a sample, in their order."""
    return hashlib.sha256(dumps(sorted(keys)).encode()).hexdigest()
