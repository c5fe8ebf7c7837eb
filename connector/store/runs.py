"""The SQL side of a run: decide it with its whole payload, close it, read it back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, delete, func, insert, select, update

from ringfence.connector import fault_points
from ringfence.connector.json_types import JsonObject
from ringfence.connector.prediction_table import FurtherSizes, PredictionTable
from ringfence.connector.records import (
    JoinedNode,
    Prediction,
    RejectedNode,
    Run,
    RunFacts,
    Threshold,
)
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.configuration import record_change
from ringfence.connector.store.audit_chain.key_salt import FIELD as SALTED
from ringfence.connector.store.audit_chain.key_salt import SaltedPredictions, current_salt
from ringfence.connector.store.calibration.calibration_digest import joined_facts
from ringfence.connector.store.calibration.joined import insert_joined
from ringfence.connector.store.calibration.run_basis import RunBasis, insert_basis
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.predictions import (
    insert_predictions,
    record_gone,
    set_gone,
    those_in_graph,
)
from ringfence.connector.store.rows import run_columns, run_from_row
from ringfence.connector.store.tables import lease, quarantine, run
from ringfence.connector.store.thresholds.recorded import (
    insert_further_sets,
    insert_thresholds,
    thresholds_digest,
)
from ringfence.connector.store.worklist.listed_nodes import (
    list_facts,
    mark_listed,
    salted_list_facts,
)
from ringfence.connector.store.worklist.sampled_nodes import (
    NO_SAMPLE,
    AuditSample,
    mark_sampled,
    sample_facts,
)
from ringfence.connector.store.writer import Writer

NO_FURTHER_SETS = FurtherSizes((), (), np.empty((0, 0), np.int64))


@dataclass(frozen=True, slots=True)
class Decision:
    """All that a run decided: its facts, the predictions, the nodes that could not be used.

    `terms` are the settings that coverage is counted under, for the record of their changes;
    `thresholds` are those of every alpha, stratum and class, `further_sets` the sets at the alphas
    after the first; `joined` are evaluated nodes that count as calibration from this run on.
    `superseded` are record's keys of nodes that left the graph: due nodes have their keys now.
    `sample` are the nodes that it drew for the audit sample; `basis` is what its entry can be
    derived from again. `listed` are the nodes on lists, each with its lists and the smallest
    promised share at which it would be on them.
    """

    facts: RunFacts
    predictions: PredictionTable | Sequence[Prediction]
    rejected: Sequence[RejectedNode]
    terms: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Sequence[Threshold] = ()
    further_sets: FurtherSizes | None = None
    joined: Sequence[JoinedNode] = ()
    superseded: Sequence[str] = ()
    sample: AuditSample = NO_SAMPLE
    basis: RunBasis | None = None
    listed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def decide(writer: Writer, decision: Decision) -> int:
    """Write run, predictions, quarantine, chain entry and watermark in one transaction.

    The predictions go block by block; the chain's entry seals all of them, and the run is decided
    when the transaction commits or not at all.
    """
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        seq = _next_seq(connection, project)
        columns = {**run_columns(decision.facts), "seq": seq, "decided_ns": now}
        record_change(connection, writer, newest_run(connection, project), columns, decision.terms)
        connection.execute(
            insert(run).values(
                project=project, state="decided", token=writer.lease.token, **columns
            )
        )
        if left := those_in_graph(connection, project, decision.superseded):
            record_gone(connection, writer, left)
        model = decision.facts.model
        salt = current_salt(connection, project)
        salted = SaltedPredictions(salt)
        digests = insert_predictions(connection, project, model, seq, decision.predictions, salted)
        mark_sampled(connection, project, decision.sample)
        mark_listed(connection, project, decision.listed)
        insert_thresholds(connection, project, seq, decision.thresholds)
        further = decision.further_sets or NO_FURTHER_SETS
        further_digest = insert_further_sets(connection, project, seq, further)
        insert_joined(connection, project, model, seq, decision.joined)
        basis_facts = insert_basis(connection, project, seq, decision.basis)
        fault_points.reach("inside decide")
        _replace_quarantine(connection, project, seq, now, decision.rejected)
        keys = keys_of(decision.predictions) if decision.listed else ()
        facts: JsonObject = {
            "run": columns,
            "predictions": digests.payload,
            SALTED: salted.facts(decision.sample.keys)
            | salted_list_facts(decision.listed, keys, salt),
            "degrees": digests.degrees,
            "thresholds": thresholds_digest(decision.thresholds),
            "bands": digests.bands,
            "identities": digests.identities,
            "further_sets": further_digest,
            "joined": joined_facts(connection, project, model, seq, decision.joined),
            "sample": sample_facts(decision.sample),
            **basis_facts,
            **list_facts(decision.listed, keys),
            "token": writer.lease.token,
        }
        writer.begin(connection)  # a large run takes longer than a lease: it counts from here
        chain.append(connection, project, writer.key, "decided", facts)
        connection.execute(
            update(lease)
            .where(lease.c.project == project)
            .values(next_seq=seq + 1, watermark_ns=decision.facts.watermark_to_ns)
        )
    return seq


def keys_of(predictions: PredictionTable | Sequence[Prediction]) -> Sequence[str]:
    """Return the keys of a run's predictions."""
    if isinstance(predictions, PredictionTable):
        return predictions.keys
    return [decided.node_key for decided in predictions]


def close_run(
    writer: Writer, seq: int, missing: Sequence[str], timings: Mapping[str, float]
) -> None:
    """Mark a run as applied; `missing` nodes had left the graph before their set reached it."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        set_gone(connection, project, missing)
        closed = connection.execute(
            update(run)
            .where(run.c.project == project, run.c.seq == seq, run.c.state == "decided")
            .values(state="applied", applied_ns=now, timings=dumps(timings))
        )
        if closed.rowcount:
            facts: JsonObject = {"seq": seq, "applied_ns": now, "gone": sorted(missing)}
            chain.append(connection, project, writer.key, "applied", facts)
        fault_points.reach("inside close")


def next_seq(store: Store, project: str) -> int:
    """Return the number that the next run will have."""
    with store.reading() as connection:
        return _next_seq(connection, project)


def undone(store: Store, project: str) -> list[int]:
    """Return the runs that were decided but not yet applied to the graph, oldest first."""
    query = select(run.c.seq).where(run.c.project == project, run.c.state == "decided")
    return _numbers(store, query.order_by(run.c.seq))


def applied_after(store: Store, project: str, seq: int) -> list[int]:
    """Return the applied runs after `seq`, oldest first."""
    query = select(run.c.seq).where(
        run.c.project == project, run.c.seq > seq, run.c.state == "applied"
    )
    return _numbers(store, query.order_by(run.c.seq))


def newest_applied(store: Store, project: str) -> int | None:
    """Return the newest run that the graph shows; None where none was applied."""
    query = select(func.max(run.c.seq)).where(run.c.project == project, run.c.state == "applied")
    with store.reading() as connection:
        return connection.execute(query).scalar()


def watermarks(store: Store, project: str) -> list[int]:
    """Return up to where each run had read the graph, oldest first."""
    query = select(run.c.watermark_to_ns).where(
        run.c.project == project, run.c.watermark_to_ns.is_not(None)
    )
    return _numbers(store, query.order_by(run.c.watermark_to_ns))


def one_run(store: Store, project: str, seq: int) -> Run:
    """Return a run."""
    query = select(run).where(run.c.project == project, run.c.seq == seq)
    with store.reading() as connection:
        return run_from_row(connection.execute(query).one())


def applied_runs(store: Store, project: str) -> list[Run]:
    """Return the runs that were applied to the graph, oldest first."""
    query = select(run).where(run.c.project == project, run.c.state == "applied")
    with store.reading() as connection:
        return [run_from_row(row) for row in connection.execute(query.order_by(run.c.seq))]


def newest_run(connection: Connection, project: str) -> Run | None:
    """Return the last run that was decided."""
    query = select(run).where(run.c.project == project).order_by(run.c.seq.desc()).limit(1)
    row = connection.execute(query).first()
    return None if row is None else run_from_row(row)


def newest_monitored_run(store: Store, project: str, model: str) -> Run | None:
    """Return the last run of a model version that has a state of the exchangeability monitor."""
    query = (
        select(run)
        .where(run.c.project == project, run.c.model == model, run.c.watch.is_not(None))
        .order_by(run.c.seq.desc())
        .limit(1)
    )
    with store.reading() as connection:
        row = connection.execute(query).first()
    return None if row is None else run_from_row(row)


def newest_run_of_model(store: Store, project: str, model: str) -> Run | None:
    """Return the last run of a model version."""
    query = select(run).where(run.c.project == project, run.c.model == model)
    with store.reading() as connection:
        row = connection.execute(query.order_by(run.c.seq.desc()).limit(1)).first()
    return None if row is None else run_from_row(row)


def finite_or_none(value: float) -> float | None:
    """Return a threshold as SQL and JSON can hold it: -infinity becomes NULL."""
    return value if math.isfinite(value) else None


def _next_seq(connection: Connection, project: str) -> int:
    query = select(lease.c.next_seq).where(lease.c.project == project)
    return int(connection.execute(query).scalar_one())


def _numbers(store: Store, query: Select[Any]) -> list[int]:
    with store.reading() as connection:
        return [int(number) for number in connection.execute(query).scalars()]


def _replace_quarantine(
    connection: Connection, project: str, seq: int, now: int, rejected: Sequence[RejectedNode]
) -> None:
    connection.execute(delete(quarantine).where(quarantine.c.project == project))
    if rejected:
        connection.execute(
            insert(quarantine),
            [
                {
                    "project": project,
                    "element_id": node.element_id,
                    "node_key": node.node_key,
                    "seq": seq,
                    "reason": node.reason,
                    "seen_ns": now,
                    "kind": node.kind,
                }
                for node in rejected
            ],
        )
