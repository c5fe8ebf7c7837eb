"""The SQL side of a run: open it, decide it with its whole payload, close it, read it back."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from ringfence.connector import chain, checkpoints
from ringfence.connector.lease import Lease, renew
from ringfence.connector.store import Store, dumps
from ringfence.connector.tables import lease, prediction, quarantine, run

if TYPE_CHECKING:  # what only looks at SQL must not wait for Neo4j's driver
    from ringfence.connector.rows import Rejected

BLOCK = 5_000


@dataclass(frozen=True, slots=True)
class Prediction:
    """One evaluated node: its set, and p-value and score of every class in the model's order."""

    node_key: str
    classes: tuple[str, ...]
    p_values: tuple[float, ...]
    scores: tuple[float, ...]
    degree: int


@dataclass(frozen=True, slots=True)
class Decision:
    """All that a run decided. `facts` are the columns of the run's row but for its bookkeeping."""

    facts: dict[str, Any]
    predictions: Sequence[Prediction]
    rejected: Sequence[Rejected]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the store under a held lease, with the audit chain's key."""

    store: Store
    lease: Lease
    key: bytes

    def begin(self, connection: Connection) -> int:
        """Renew the lease as the first statement; return the database's time."""
        renew(self.store, connection, self.lease)
        return self.store.now_ns(connection)


def decide(writer: Writer, decision: Decision) -> int:
    """Write run, predictions, quarantine, chain entry and watermark in one transaction."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        seq = connection.execute(
            select(lease.c.next_seq).where(lease.c.project == project)
        ).scalar_one()
        facts = {**decision.facts, "seq": seq, "decided_ns": now}
        connection.execute(
            insert(run).values(project=project, state="decided", token=writer.lease.token, **facts)
        )
        _insert_predictions(connection, project, seq, decision.predictions)
        checkpoints.at("inside decide")
        _replace_quarantine(connection, project, seq, now, decision.rejected)
        digest = payload_digest(decision.predictions)
        chain.append(
            connection, project, writer.key, "decided", {"run": facts, "predictions": digest}
        )
        connection.execute(
            update(lease)
            .where(lease.c.project == project)
            .values(next_seq=seq + 1, watermark_ns=facts["watermark_to_ns"])
        )
    return int(seq)


def payload_digest(predictions: Sequence[Prediction]) -> str:
    """Return one hash over all predictions, in the order of their keys."""
    digest = hashlib.sha256()
    for one in sorted(predictions, key=lambda p: p.node_key):
        digest.update(dumps([one.node_key, one.classes, one.p_values, one.scores]).encode())
    return digest.hexdigest()


def next_seq(store: Store, project: str) -> int:
    """Return the number that the next run will have."""
    with store.reading() as connection:
        found = connection.execute(
            select(lease.c.next_seq).where(lease.c.project == project)
        ).scalar_one()
        return int(found)


def undone(store: Store, project: str) -> list[int]:
    """Return the runs that were decided but not yet applied to the graph, oldest first."""
    with store.reading() as connection:
        rows = connection.execute(
            select(run.c.seq)
            .where(run.c.project == project, run.c.state == "decided")
            .order_by(run.c.seq)
        )
        return [int(row.seq) for row in rows]


def applied_after(store: Store, project: str, seq: int) -> list[int]:
    """Return the applied runs after `seq`, oldest first."""
    with store.reading() as connection:
        rows = connection.execute(
            select(run.c.seq)
            .where(run.c.project == project, run.c.seq > seq, run.c.state == "applied")
            .order_by(run.c.seq)
        )
        return [int(row.seq) for row in rows]


def close_run(writer: Writer, seq: int, missing: Sequence[str], timings: dict[str, float]) -> None:
    """Mark a run as applied; `missing` nodes had left the graph before their set reached it."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        _mark_gone(connection, project, missing)
        connection.execute(
            update(run)
            .where(run.c.project == project, run.c.seq == seq, run.c.state == "decided")
            .values(state="applied", applied_ns=now, timings=dumps(timings))
        )
        checkpoints.at("inside close")


def mark_gone(writer: Writer, keys: Sequence[str]) -> None:
    """Mark predictions whose node has left the graph; the predictions stay."""
    with writer.store.transaction() as connection:
        writer.begin(connection)
        _mark_gone(connection, writer.lease.project, keys)


def _mark_gone(connection: Connection, project: str, keys: Sequence[str]) -> None:
    for start in range(0, len(keys), BLOCK):
        some = keys[start : start + BLOCK]
        connection.execute(
            update(prediction)
            .where(prediction.c.project == project, prediction.c.node_key.in_(some))
            .values(in_graph=False)
        )


def some_predictions(store: Store, project: str, keys: Sequence[str]) -> list[Row[Any]]:
    """Return the predictions of `keys`."""
    with store.reading() as connection:
        return list(
            connection.execute(
                select(prediction).where(
                    prediction.c.project == project, prediction.c.node_key.in_(keys)
                )
            )
        )


def one_run(store: Store, project: str, seq: int) -> Row[Any]:
    """Return a run's row."""
    with store.reading() as connection:
        return connection.execute(
            select(run).where(run.c.project == project, run.c.seq == seq)
        ).one()


def payload(store: Store, project: str, seq: int, rows: int) -> Iterator[list[Row[Any]]]:
    """Yield a run's stored predictions in blocks, by key."""
    last = ""
    while True:
        with store.reading() as connection:
            block = connection.execute(
                select(prediction)
                .where(
                    prediction.c.project == project,
                    prediction.c.seq == seq,
                    prediction.c.node_key > last,
                )
                .order_by(prediction.c.node_key)
                .limit(rows)
            ).all()
        if not block:
            return
        yield list(block)
        last = block[-1].node_key


def evaluated_keys(store: Store, project: str, after_seq: int = 0) -> list[str]:
    """Return the keys of nodes evaluated in runs after `after_seq`."""
    with store.reading() as connection:
        return list(
            connection.execute(
                select(prediction.c.node_key).where(
                    prediction.c.project == project, prediction.c.seq > after_seq
                )
            ).scalars()
        )


def finite(value: float) -> float | None:
    """Return a threshold as SQL and JSON can hold it: -infinity becomes NULL."""
    return value if math.isfinite(value) else None


def _insert_predictions(
    connection: Connection, project: str, seq: int, predictions: Sequence[Prediction]
) -> None:
    for start in range(0, len(predictions), BLOCK):
        connection.execute(
            insert(prediction),
            [
                {
                    "project": project,
                    "node_key": one.node_key,
                    "seq": seq,
                    "size": len(one.classes),
                    "classes": dumps(one.classes),
                    "p_values": dumps(one.p_values),
                    "scores": dumps(one.scores),
                    "degree": one.degree,
                    "top_p": max(one.p_values),
                    "in_graph": True,
                }
                for one in predictions[start : start + BLOCK]
            ],
        )


def _replace_quarantine(
    connection: Connection, project: str, seq: int, now: int, rejected: Sequence[Rejected]
) -> None:
    connection.execute(delete(quarantine).where(quarantine.c.project == project))
    if rejected:
        connection.execute(
            insert(quarantine),
            [
                {
                    "project": project,
                    "element_id": bad.element_id,
                    "node_key": bad.node_key,
                    "seq": seq,
                    "reason": bad.reason,
                    "seen_ns": now,
                }
                for bad in rejected
            ],
        )
