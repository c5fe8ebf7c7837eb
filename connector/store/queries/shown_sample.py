"""Which row of the audit sample is shown: the newest one with a verdict, and the worst of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sqlalchemy import Connection, select

from ringfence.connector.records import CoverageRow, StoredCoverage
from ringfence.connector.store.queries.totals import SEVERITY
from ringfence.connector.store.rows import coverage_from_row
from ringfence.connector.store.tables import coverage

UNDECIDED = "not enough known yet"
MAX_ROWS = 2_000  # of the newest runs, two each: a run with a verdict is among them
Row = TypeVar("Row", bound=CoverageRow)


def last_sample(connection: Connection, project: str) -> StoredCoverage | None:
    """Return the row of the audit sample that a project is shown with; None where none is."""
    query = (
        select(coverage)
        .where(coverage.c.project == project, coverage.c.slice == "sample")
        .order_by(coverage.c.seq.desc(), coverage.c.name)
        .limit(MAX_ROWS)
    )
    return shown_sample([coverage_from_row(row) for row in connection.execute(query)][::-1])


def coverage_bounds(row: CoverageRow) -> tuple[float, float]:
    """Return coverage with every node of unknown class counted as missed, and as covered."""
    unknown = row.evaluated - row.known
    return row.covered / row.evaluated, (row.covered + unknown) / row.evaluated


def shown_sample(rows: Sequence[Row]) -> Row | None:
    """Return the row of the slice `sample` that is shown, of rows whose oldest run comes first.

    Of all runs and of the last quarter, by the model that ran last, the newest row that has a
    verdict, since classes of the newest nodes are not known yet; the worse of the two, and the
    worst of several alphas. Where none has a verdict, the newest.
    """
    if not rows:
        return None
    of_model = [row for row in rows if row.model == rows[-1].model]
    decided = {(row.name, row.alpha): row for row in of_model if row.verdict != UNDECIDED}
    if decided:
        return max(decided.values(), key=_severity)
    return [row for row in of_model if not row.name][-1]


def _severity(row: CoverageRow) -> tuple[int, bool, bool]:
    return SEVERITY.get(row.verdict, 0), row.first_alpha, not row.name
