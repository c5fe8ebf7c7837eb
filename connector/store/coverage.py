"""Coverage rows in SQL: one per run, slice and name; only what changed is written and chained."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import NAMED_SLICES, AuditMark, CoverageRow, StoredCoverage
from ringfence.connector.store import chain
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.groups import seal_groups
from ringfence.connector.store.rows import (
    ColumnValues,
    audit_mark_from_row,
    coverage_columns,
    coverage_from_row,
    stored_coverage_columns,
)
from ringfence.connector.store.tables import audit_mark, coverage
from ringfence.connector.store.writer import Writer

NO_MARK: JsonObject = {"labels_ns": None, "grouped_seq": 0, "advice": None}
"""What the chain would have of the mark before an audit has moved it."""

ROWS_PER_DELETE = 100  # each adds three conditions to one statement

Id = tuple[int, str, str, float]
"""Run, slice, name and alpha: the key of a project's coverage row."""


def record_coverage(
    writer: Writer, rows: Sequence[CoverageRow]
) -> tuple[list[StoredCoverage], list[StoredCoverage]]:
    """Write the rows that are new or different; return those, and stored rows that went."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        before = {_id(row): row for row in _stored(connection, project)}
        changed = [
            StoredCoverage(**columns, project=project, audited_ns=now)
            for row in rows
            if (columns := coverage_columns(row)) != _columns(before.get(_id(row)))
        ]
        wanted = {_id(row) for row in rows}
        gone = [
            row for key, row in before.items() if key not in wanted and row.slice in NAMED_SLICES
        ]
        _remove(connection, project, [_id(row) for row in (*changed, *gone)])
        values = [stored_coverage_columns(row) for row in changed]
        if changed:
            connection.execute(insert(coverage), values)
        if changed or gone:
            facts: JsonObject = {"coverage": values, "gone": [list(_id(row)) for row in gone]}
            chain.append(connection, project, writer.key, "audited", facts)
        _set_mark(connection, project, {"audited_ns": now})
    return changed, gone


def stored(store: Store, project: str) -> list[StoredCoverage]:
    """Return all coverage rows, oldest run first."""
    with store.reading() as connection:
        return _stored(connection, project)


def changed_runs(store: Store, project: str, rows: Sequence[CoverageRow]) -> set[int]:
    """Return the runs about which `rows` say something else than the stored ones."""
    before = {_id(row): row for row in stored(store, project)}
    return {
        row.seq
        for row in rows
        if row.slice == "run" and coverage_columns(row) != _columns(before.get(_id(row)))
    }


def unseen_classes(connection: Connection, project: str, model: str) -> dict[str, int]:
    """Return the classes that a model never saw, with the number of nodes that have them."""
    query = select(coverage.c.name, func.sum(coverage.c.unseen).label("nodes")).where(
        coverage.c.project == project,
        coverage.c.slice == "class",
        coverage.c.unseen > 0,
        coverage.c.model == model,
        coverage.c.first_alpha.is_(True),
    )
    rows = connection.execute(query.group_by(coverage.c.name))  # a row of each terms
    return {row.name: int(row.nodes) for row in rows}


def mark_of(store: Store, project: str) -> AuditMark | None:
    """Return how far the audit has come; None before the first one."""
    with store.reading() as connection:
        row = _mark(connection, project)
    return None if row is None else audit_mark_from_row(row)


def set_mark(
    writer: Writer,
    before: AuditMark | None,
    *,
    labels_ns: int | None = None,
    grouped_seq: int | None = None,
    advice: Mapping[str, Any] | None = None,
) -> AuditMark:
    """Move the given parts of the mark, in a transaction of their own; return it.

    The other parts stay as in `before`, whatever the row says by now: what is sealed is what the
    caller compared with the chain.
    """
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        left = before or AuditMark(now, None, 0, None)
        mark = AuditMark(
            now,
            left.labels_ns if labels_ns is None else labels_ns,
            left.grouped_seq if grouped_seq is None else grouped_seq,
            left.advice if advice is None else advice,
        )
        _set_mark(connection, writer.lease.project, _mark_columns(mark))
        if grouped_seq is not None:
            seal_groups(connection, writer, grouped_seq)
        facts = mark_facts(_mark(connection, writer.lease.project))
        chain.append(connection, writer.lease.project, writer.key, "marked", facts)
    return mark


def _mark_columns(mark: AuditMark) -> ColumnValues:
    advice = None if mark.advice is None else dumps(mark.advice)
    return {
        "audited_ns": mark.audited_ns,
        "labels_ns": mark.labels_ns,
        "grouped_seq": mark.grouped_seq,
        "advice": advice,
    }


def mark_facts(row: Any) -> JsonObject:
    """Return what the chain has of a mark: up to where classes and groups were read, the advice.

    `row` has the columns of the table `audit_mark`; `audited_ns` moves with every audit.
    """
    advice = None if row.advice is None else hashlib.sha256(row.advice.encode()).hexdigest()
    return {"labels_ns": row.labels_ns, "grouped_seq": row.grouped_seq, "advice": advice}


def _mark(connection: Connection, project: str) -> Any:
    return connection.execute(select(audit_mark).where(audit_mark.c.project == project)).first()


def _set_mark(connection: Connection, project: str, values: ColumnValues) -> None:
    done = connection.execute(
        update(audit_mark).where(audit_mark.c.project == project).values(**values)
    )
    if done.rowcount == 0:
        fresh = {"project": project, "grouped_seq": 0} | values
        connection.execute(insert(audit_mark).values(**fresh))


def _stored(connection: Connection, project: str) -> list[StoredCoverage]:
    query = (
        select(coverage)
        .where(coverage.c.project == project)
        .order_by(coverage.c.seq, coverage.c.slice, coverage.c.name, coverage.c.alpha)
    )
    return [coverage_from_row(row) for row in connection.execute(query)]


def _id(row: CoverageRow) -> Id:
    return row.seq, row.slice, row.name, row.alpha


def _columns(row: CoverageRow | None) -> ColumnValues | None:
    return None if row is None else coverage_columns(row)


def _remove(connection: Connection, project: str, ids: list[Id]) -> None:
    for part in split(ids, ROWS_PER_DELETE):
        some = [
            and_(
                coverage.c.seq == seq,
                coverage.c.slice == slice_,
                coverage.c.name == name,
                coverage.c.alpha == alpha,
            )
            for seq, slice_, name, alpha in part
        ]
        connection.execute(delete(coverage).where(coverage.c.project == project, or_(*some)))
