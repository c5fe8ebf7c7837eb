"""Coverage rows: counted from the predictions, written to SQL; one row per run and slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, case, delete, func, insert, select

from ringfence.connector import chain
from ringfence.connector.runs import Writer
from ringfence.connector.store import Store
from ringfence.connector.tables import coverage, prediction, run


def _count(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


def tallies(store: Store, project: str) -> list[Row[Any]]:
    """Return per run: evaluated, known, covered, covered_naive, total size, and the run's terms."""
    query = (
        select(
            run.c.seq,
            run.c.rule,
            run.c.alpha,
            run.c.model,
            run.c.n_calibration,
            run.c.effective_calibration,
            func.count().label("evaluated"),
            _count(prediction.c.labelled_ns.is_not(None)).label("known"),
            _count(prediction.c.covered.is_(True)).label("covered"),
            _count(prediction.c.covered_naive.is_(True)).label("covered_naive"),
            func.sum(prediction.c.size).label("total_size"),
        )
        .join(prediction, (run.c.project == prediction.c.project) & (run.c.seq == prediction.c.seq))
        .where(run.c.project == project)
        .group_by(
            run.c.seq,
            run.c.rule,
            run.c.alpha,
            run.c.model,
            run.c.n_calibration,
            run.c.effective_calibration,
        )
        .order_by(run.c.seq)
    )
    with store.reading() as connection:
        return list(connection.execute(query))


def record_coverage(writer: Writer, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace the rows of the same run and slice; return them with the time of this audit."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        stamped = [{**row, "project": project, "audited_ns": now} for row in rows]
        for row in stamped:
            connection.execute(
                delete(coverage).where(
                    coverage.c.project == project,
                    coverage.c.seq == row["seq"],
                    coverage.c.slice == row["slice"],
                )
            )
        if stamped:
            connection.execute(insert(coverage), stamped)
            chain.append(connection, project, writer.key, "audited", {"coverage": stamped})
    return stamped


def stored(store: Store, project: str) -> list[Row[Any]]:
    """Return all coverage rows, oldest run first."""
    with store.reading() as connection:
        return list(
            connection.execute(
                select(coverage)
                .where(coverage.c.project == project)
                .order_by(coverage.c.seq, coverage.c.slice)
            )
        )
