"""Coverage of a period as a table of the report."""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.connector.store.queries.period import PeriodCoverage
from ringfence.jobs.views.tables import Column, Table

COLUMNS = (
    Column(
        "of", "slice", "text", "All nodes, or those of a run, class, group or the audit sample."
    ),
    Column("name", "name", "text", "The run's number, the class, or property=value."),
    Column("model", "model", "text", "The model version that gave the sets."),
    Column("promised", "promised", "percent", "1 - alpha of the runs."),
    Column("nodes", "evaluated", "int", "Evaluated nodes."),
    Column("known", "known", "int", "Nodes whose class is known by now."),
    Column("covered", "covered", "int", "Nodes of known class whose set has it."),
    Column("coverage", "coverage", "percent", "Covered of known."),
    Column("set size", "mean_size", "num", "Mean number of classes in a set."),
    Column("unseen", "unseen", "int", "Nodes of a class that the model never saw.", extra=True),
)


def period_table(rows: Sequence[PeriodCoverage], sentence: str) -> Table:
    """Return the counts of a period; `sentence` says which."""
    cells = [
        row.as_json()
        | {
            "promised": 1 - row.alpha,
            "coverage": row.covered / row.known if row.known else None,
            "mean_size": row.classes_in_sets / row.evaluated if row.evaluated else None,
        }
        for row in rows
    ]
    title = f"Coverage of runs decided {sentence}"
    return Table("coverage-period", title, COLUMNS, cells)
