"""Tables of coverage rows: by run, window and total, by class and group."""

from __future__ import annotations

from dataclasses import replace

from ringfence.connector.records import StoredCoverage
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.queries.shown_sample import coverage_bounds
from ringfence.jobs.views.tables.model import Cells, Column, TableView

KNOWN = Column("known", "known", "int", "Evaluated nodes whose class became known since.")
COVERED = Column(
    "covered", "coverage", "percent",
    "Share of the known nodes whose set held their class; judge it beside the set size.",
)  # fmt: skip
SIZE = Column(
    "mean size", "mean_size", "num",
    "Classes per set on average: a large set covers easily and says little.",
)  # fmt: skip
VERDICT = Column(
    "verdict", "verdict", "verdict",
    "What the known classes say of the promise: kept, watch, broken, or too little known yet.",
)  # fmt: skip
COLUMNS = (
    Column("evaluated", "evaluated", "int", "Nodes that got a set, known or not.", extra=True),
    KNOWN,
    COVERED,
    SIZE,
    VERDICT,
    Column(
        "usual band", "band", "text",
        "Where coverage lies in 95 of 100 cases when all is well, for one look.",
    ),
    Column(
        "anytime bound", "anytime_low", "percent",
        "Coverage falls below it with probability at most 1 % when all is well, however often one "
        "looks; proved for frozen calibration, measured otherwise.", extra=True,
    ),
    Column(
        "p", "p_value", "p",
        "Chance of coverage this low or lower if the promise holds; small is bad.", extra=True,
    ),
    Column(
        "one class", "singleton_rate", "percent",
        "Share of the sets that hold a single class.", extra=True,
    ),
    Column(
        "of those right", "singleton_hit", "percent",
        "Share of the sets with a single class, of known nodes, that hold the right one.",
        extra=True,
    ),
    Column("empty", "empty", "int", "Sets without any class: nothing conforms.", extra=True),
    Column("full", "full", "int", "Sets with every class: nothing is excluded.", extra=True),
)  # fmt: skip
NAIVE = (
    Column(
        "naive covered", "naive_coverage", "percent",
        "Share that sets by the naive threshold, computed once and never again, would have "
        "covered; no better where its sets are larger.", extra=True,
    ),
    Column(
        "naive size", "mean_size_naive", "num",
        "Classes per naive set on average, to be read with the naive coverage.", extra=True,
        beside="naive_coverage",
    ),
)  # fmt: skip
RUN = Column("run", "seq", "run", "Number of the run; the link opens it.")
DECIDED = Column("decided", "decided_ns", "time", "When the run decided its sets, in UTC.")
PROMISED = Column(
    "promised", "promised", "percent", "Share that is promised to be covered at least.", extra=True
)
OWN = Column(
    "own promise", "own_promised", "percent",
    "What is promised to this class or group alone; none where the promise is for all nodes.",
)  # fmt: skip
RUN_FIRST = ("seq", "decided_ns")
NO_GROUPS = 'No groups. Set [audit] groups = ["region"]: later runs are counted by it.'


def by_slice(slice_: str, title: str) -> TableView:
    """Return the table of a slice, newest run first."""
    return TableView(
        f"coverage-{slice_}",
        title,
        (RUN, PROMISED, *COLUMNS, DECIDED, *NAIVE),
        lambda queries: [
            coverage_cells(row) for row in reversed(queries.coverage(slice_, every_alpha=True))
        ],
        lead=RUN_FIRST,
    )


def by_name(slice_: str, title: str, name: str, empty: str) -> TableView:
    """Return the table of classes or groups, worst first."""
    about = {"class": "A class that became known.", "group": "A configured property and its value."}
    return TableView(
        name,
        title,
        (Column(slice_, "name", "text", about[slice_]), *COLUMNS, OWN),
        lambda queries: [coverage_cells(row) for row in queries.named(slice_)],
        empty,
    )


def coverage_cells(row: StoredCoverage) -> Cells:
    """Return a row's columns with what is computed from the counts: rates and the band as text.

    Naive coverage is left out where the size of the naive sets is not on record.
    """
    known, sized = row.known, row.mean_size_naive is not None
    about = "" if row.exact else "about "
    band = f"{about}{100 * row.low:.1f} – {100 * row.high:.1f} %" if known else None
    return as_row(row) | {
        "promised": 1 - row.alpha,
        "own_promised": 1 - row.alpha if row.own_promise else None,
        "singleton_rate": row.singletons / row.evaluated if row.evaluated else None,
        "singleton_hit": row.singleton_hits / row.singletons_known
        if row.singletons_known
        else None,
        "anytime_low": row.anytime_low if known and row.verdict != "no verdict" else None,
        "p_value": row.p_value if known else None,
        "band": band,
        "naive_coverage": row.covered_naive / known if known and sized else None,
    }


def _sample_cells(row: StoredCoverage) -> Cells:
    low, high = coverage_bounds(row)
    return coverage_cells(row) | {"at_least": low, "at_most": high, "over": row.name or "all runs"}


SAMPLE = TableView(
    "coverage-sample",
    "Coverage of the audit sample",
    (
        RUN,
        Column("over", "over", "text", "All runs with the same terms, or those of the last days."),
        Column("sampled", "evaluated", "int", "Nodes that were drawn by a keyed hash."),
        KNOWN,
        Column(
            "at least", "at_least", "percent",
            "Coverage if every sampled node of unknown class was missed.",
        ),
        Column(
            "at most", "at_most", "percent",
            "Coverage if every sampled node of unknown class was covered.",
        ),
        PROMISED,
        VERDICT,
        *(replace(column, extra=True) for column in (SIZE, *COLUMNS[5:8])),
        DECIDED,
    ),
    lambda queries: [
        _sample_cells(row) for row in reversed(queries.coverage("sample", every_alpha=True))
    ],
    "No audit sample. Set [audit] sample_nodes: later runs draw one.",
    lead=RUN_FIRST,
)  # fmt: skip
PER_RUN = by_slice("run", "Coverage of each run")
WINDOW = by_slice("window", "Coverage of the last runs together")
TOTAL = by_slice("total", "Coverage of all runs so far")
CLASSES = by_name("class", "Classes, worst first", "classes", "Nothing known yet.")
GROUPS = by_name("group", "Groups, worst first", "groups", NO_GROUPS)
