"""Tables of coverage rows: by run, window and total, by class and group."""

from __future__ import annotations

from typing import Any

from ringfence.connector.records import StoredCoverage
from ringfence.connector.store.queries.records import as_row
from ringfence.jobs.views.tables.model import Column, TableView

COLUMNS = (
    Column("evaluated", "evaluated", "int"),
    Column("known", "known", "int"),
    Column("covered", "coverage", "percent"),
    Column("mean size", "mean_size", "num"),
    Column("verdict", "verdict", "verdict"),
    Column("usual band", "band", "text"),
    Column("anytime bound", "anytime_low", "percent"),
    Column("p", "p_value", "p"),
    Column("one class", "singleton_rate", "percent"),
    Column("of those right", "singleton_hit", "percent"),
    Column("empty", "empty", "int"),
    Column("full", "full", "int"),
)
NO_GROUPS = 'No groups. Set [audit] groups = ["region"]: later runs are counted by it.'


def by_slice(slice_: str, title: str) -> TableView:
    """Return the table of a slice, newest run first."""
    return TableView(
        f"coverage-{slice_}",
        title,
        (Column("run", "seq", "run"), Column("promised", "promised", "percent"), *COLUMNS),
        lambda queries: [
            coverage_cells(row) for row in reversed(queries.coverage(slice_, every_alpha=True))
        ],
    )


def by_name(slice_: str, title: str, name: str, empty: str) -> TableView:
    """Return the table of classes or groups, worst first."""
    return TableView(
        name,
        title,
        (Column(slice_, "name"), *COLUMNS, Column("own promise", "own_promised", "percent")),
        lambda queries: [coverage_cells(row) for row in queries.named(slice_)],
        empty,
    )


def coverage_cells(row: StoredCoverage) -> dict[str, Any]:
    """Return a row's columns with what is computed from the counts: rates and the band as text."""
    known = row.known
    about = "" if row.exact else "about "
    band = f"{about}{100 * row.low:.1f} – {100 * row.high:.1f} %" if known else None
    return as_row(row) | {
        "promised": 1 - row.alpha,
        "own_promised": 1 - row.alpha if row.own_promise else None,
        "singleton_rate": row.singletons / row.evaluated if row.evaluated else None,
        "singleton_hit": row.singleton_hits / row.singletons_known
        if row.singletons_known
        else None,
        "anytime_low": row.anytime_low if known else None,
        "p_value": row.p_value if known else None,
        "band": band,
    }


PER_RUN = by_slice("run", "Coverage of each run")
WINDOW = by_slice("window", "Coverage of the last runs together")
TOTAL = by_slice("total", "Coverage of all runs so far")
CLASSES = by_name("class", "Classes, worst first", "classes", "Nothing known yet.")
GROUPS = by_name("group", "Groups, worst first", "groups", NO_GROUPS)
