"""Tables of runs: outcomes, thresholds, drift, comparisons before labels."""

from __future__ import annotations

import json

from ringfence.connector.records import Run
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.queries.project import HEAVY_RUN_COLUMNS, ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.jobs.lifecycle.score_drift import score_distances
from ringfence.jobs.views.charts.comparison import compared_quantities
from ringfence.jobs.views.tables.coverage import (
    COVERED,
    DECIDED,
    KNOWN,
    RUN,
    RUN_FIRST,
    SIZE,
    VERDICT,
)
from ringfence.jobs.views.tables.model import Cells, Column, Rows, TableView

OUTCOME = ("known", "coverage", "mean_size", "verdict")


def _run_rows(queries: ProjectQueries) -> Rows:
    return [_run_cells(run) for run in reversed(queries.runs())]


def _outcome_rows(queries: ProjectQueries) -> Rows:
    """Runs with what the classes that became known say of each."""
    counted = {row.seq: as_row(row) for row in queries.coverage("run")}
    return [
        _run_cells(run)
        | {name: counted.get(run.seq, {}).get(name) for name in OUTCOME}
        | {"seconds": sum(run.timings.values()) if run.timings else None}
        for run in reversed(queries.runs())
    ]


def _run_cells(run: Run) -> Cells:
    """The run's columns; notes and timings are JSON text, as they stand in SQL."""
    cells = {name: value for name, value in as_row(run).items() if name not in HEAVY_RUN_COLUMNS}
    return cells | {"notes": json.dumps(run.notes), "timings": dumps(run.timings)}


def _drift_rows(queries: ProjectQueries) -> Rows:
    states = queries.monitor_states()
    distance = {row.seq: row.distance for row in score_distances(states)}
    return [
        {
            "seq": state.seq,
            "distance": distance.get(state.seq),
            "new": (state.watch or {}).get("new"),
            "mean_p": (state.watch or {}).get("mean_p"),
            "decided_ns": state.decided_ns,
        }
        for state in reversed(states)
    ]


def _comparison_rows(queries: ProjectQueries) -> Rows:
    """A row per run and quantity that was compared."""
    return [
        {
            "seq": run.seq,
            "decided_ns": run.decided_ns,
            "quantity": name,
            "due": quantity["due"],
            "calibration": quantity["calibration"],
            "distance": quantity["distance"],
            "p": quantity["p"],
            "state": "differs" if quantity["p"] < (run.shift or {})["level"] else "alike",
        }
        for run in reversed(queries.runs())
        for name, quantity in compared_quantities(run).items()
    ]


CALIBRATION = Column(
    "calibration", "n_calibration", "int", "How many calibration nodes the run had.", extra=True
)
RUNS = TableView(
    "runs",
    "Runs",
    (
        RUN,
        DECIDED,
        Column("state", "state", "text", "Decided in SQL, or applied to the graph.", extra=True),
        Column("evaluated", "n_evaluated", "int", "Nodes that got their set in this run."),
        Column("waiting", "n_waiting", "int", "New nodes that are not due yet.", extra=True),
        Column("rule", "rule", "text", "Which nodes are compared with which.", extra=True),
        Column("alpha", "alpha", "num", "Share that may be missed.", extra=True),
        Column(
            "threshold", "threshold", "threshold",
            "A class with a score at or above it is in the set; none where there are several.",
            extra=True,
        ),
        CALIBRATION,
        Column("model", "model", "model", "The model version that scored."),
        Column("settings", "config", "text", "Digest of the configuration.", extra=True),
        KNOWN,
        COVERED,
        SIZE,
        VERDICT,
        Column("seconds", "seconds", "num", "How long the run took.", extra=True),
    ),
    _outcome_rows,
    "No run yet: ringfence score",
    lead=("seq", "decided_ns", "n_evaluated", *OUTCOME),
)  # fmt: skip
THRESHOLDS = TableView(
    "thresholds",
    "Thresholds",
    (
        RUN,
        Column(
            "NodeEx", "threshold_node", "threshold",
            "Threshold if nodes arrive in random order; −∞ is the full set.",
        ),
        Column(
            "EdgeEx", "threshold_edge", "threshold",
            "Threshold if relationships arrive in random order; −∞ is the full set.",
        ),
        Column(
            "naive", "threshold_naive", "threshold",
            "Threshold computed once at training and never again; for comparison.",
        ),
        Column("calibration", "n_calibration", "int", "How many calibration nodes the run had."),
        Column(
            "effective", "effective_calibration", "num",
            "What the calibration nodes are worth by their weights.", extra=True,
        ),
        DECIDED,
    ),
    _run_rows,
    "No run yet: ringfence score",
    lead=RUN_FIRST,
)  # fmt: skip
DRIFT = TableView(
    "drift",
    "Drift by run",
    (
        RUN,
        Column(
            "distance of scores", "distance", "num",
            "By how much calibration scores moved on average since the model's first run.",
        ),
        Column(
            "new classes watched", "new", "int",
            "Nodes of newly known class that the monitor bet on at this run.",
        ),
        Column(
            "mean p", "mean_p", "num",
            "Mean p-value of these nodes among those known before; about 0.5 when all is well.",
        ),
        DECIDED,
    ),
    _drift_rows,
    "No run yet: ringfence score",
    lead=RUN_FIRST,
)  # fmt: skip
COMPARISON = TableView(
    "before-labels",
    "Nodes of each run beside its calibration nodes, before any label",
    (
        RUN,
        DECIDED,
        Column("quantity", "quantity", "text", "What was compared."),
        Column("nodes of the run", "due", "num", "Median of the nodes that got a set."),
        Column(
            "calibration nodes", "calibration", "num",
            "Median of the calibration nodes on the same graph, within the same bands.",
        ),
        Column(
            "distance", "distance", "num",
            "Largest gap between the two distributions, from 0 to 1.",
        ),
        Column(
            "p", "p", "p",
            "Chance of a gap this large if the two are alike; it pays for all quantities.",
        ),
        Column("state", "state", "state", "Whether the difference is reported."),
    ),
    _comparison_rows,
    "No run compared its nodes: too few were due, or the promise is per class.",
)  # fmt: skip
