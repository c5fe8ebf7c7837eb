"""Which total is shown: runs are counted together by their terms, and the worst total is shown.

A model's runs may have been made under several terms (rule, score, alpha, a half-life or other
options, weighted calibration nodes or not), each with a total of its own at the last of its runs. A
change of the configuration must not hide earlier findings: as long as a model is in use, its worst
verdict is the one shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import Connection, func, select

from ringfence.connector.records import NAMED_SLICES, CoverageRow, StoredCoverage
from ringfence.connector.store.rows import coverage_from_row
from ringfence.connector.store.tables import coverage, run

SEVERITY = {"broken": 2, "watch": 1}
"""Verdicts that outrank those of newer terms; the others don't."""

Row = TypeVar("Row", bound=CoverageRow)


def last_totals(connection: Connection, project: str) -> list[StoredCoverage]:
    """Return the newest total of each set of terms, oldest run first."""
    of_run = (run.c.project == coverage.c.project) & (run.c.seq == coverage.c.seq)
    totals = (coverage.c.project == project) & (coverage.c.slice == "total")
    terms = (
        run.c.model,
        run.c.rule,
        run.c.score,
        coverage.c.alpha,
        run.c.options,
        run.c.effective_calibration == run.c.n_calibration,
    )
    ends = (
        select(func.max(run.c.seq).label("seq"), coverage.c.alpha)
        .join(coverage, of_run)
        .where(totals)
        .group_by(*terms)
        .subquery()
    )
    last = (coverage.c.seq == ends.c.seq) & (coverage.c.alpha == ends.c.alpha)
    query = (
        select(coverage)
        .join(ends, last)
        .where(totals)
        .order_by(coverage.c.seq, coverage.c.first_alpha, coverage.c.alpha)
    )
    return [coverage_from_row(row) for row in connection.execute(query)]


def last_named(connection: Connection, project: str) -> list[StoredCoverage]:
    """Return the classes and groups of the last run that has such rows, at its first alpha."""
    named = (coverage.c.project == project) & coverage.c.slice.in_(NAMED_SLICES)
    last = select(func.max(coverage.c.seq)).where(named).scalar_subquery()
    query = select(coverage).where(named, coverage.c.seq == last, coverage.c.first_alpha.is_(True))
    rows = connection.execute(query.order_by(coverage.c.slice, coverage.c.name))
    return [coverage_from_row(row) for row in rows]


def worst_total(totals: Sequence[Row]) -> Row | None:
    """Return the worst of the last totals (oldest run first) of the model that ran last.

    That of the newest run at its first alpha, unless another one is broken, or is to be watched
    where the newest is not; its words then say which runs it is about.
    """
    if not totals:
        return None
    newest = totals[-1]
    of_model = [total for total in totals if total.model == newest.model]
    worst = max(of_model, key=_severity)
    if worst is newest:
        return newest
    if worst.seq == newest.seq:  # another alpha of the same run; its words name the promise
        return worst
    return replace(
        worst,
        words=f"{worst.words}; this is about the runs at alpha {worst.alpha:g} until run "
        f"{worst.seq}, before the configuration changed",
    )


def worst_promise(total: Row | None, own_rows: Sequence[Row]) -> Row | None:
    """Return the verdict that a project is shown with: of all nodes, or of a class or group.

    `own_rows` are the rows of classes and groups that have a promise of their own. If one of them
    is worse than the total, it is returned instead, with its name: an average hides a rare class.
    """
    if total is None:
        return None
    of_model = [row for row in own_rows if row.model == total.model]
    worst = max(of_model, key=lambda row: (_severity(row)[0], -row.anytime_p), default=total)
    if _severity(worst)[0] <= _severity(total)[0]:
        return total
    return replace(worst, words=f"{worst.slice} {worst.name}: {worst.words}")


def own_promises(connection: Connection, project: str) -> list[StoredCoverage]:
    """Return the rows of classes and groups with a promise of their own, under all terms."""
    chosen = (coverage.c.project == project) & coverage.c.own_promise.is_(True)
    query = select(coverage).where(chosen).order_by(coverage.c.seq, coverage.c.slice)
    return [coverage_from_row(row) for row in connection.execute(query)]


def _severity(total: CoverageRow) -> tuple[int, int, bool]:
    return SEVERITY.get(total.verdict, 0), total.seq, total.first_alpha
