"""Tables of runs and models: runs, thresholds, drift, model versions."""

from __future__ import annotations

import json
from typing import Any

from ringfence.connector.records import Run
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.queries.project import HEAVY_RUN_COLUMNS, ProjectQueries
from ringfence.connector.store.queries.records import ModelRecord, as_row
from ringfence.jobs.views.charts import score_distances
from ringfence.jobs.views.tables.model import Column, Rows, TableView


def _run_rows(queries: ProjectQueries) -> Rows:
    return [_run_cells(run) for run in reversed(queries.runs())]


def _run_cells(run: Run) -> dict[str, Any]:
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
        }
        for state in reversed(states)
    ]


def _model_rows(queries: ProjectQueries) -> Rows:
    return [_model_cells(model) for model in reversed(queries.models())]


def _model_cells(model: ModelRecord) -> dict[str, Any]:
    return {
        **as_row(model),
        "network": model.network,
        "class_count": len(model.classes),
        "weights": model.weights_sha256 or "",
        **model.counts,
    }


RUNS = TableView(
    "runs",
    "Runs",
    (
        Column("run", "seq", "run"),
        Column("decided", "decided_ns", "time"),
        Column("state", "state"),
        Column("evaluated", "n_evaluated", "int"),
        Column("waiting", "n_waiting", "int"),
        Column("rule", "rule"),
        Column("alpha", "alpha", "num"),
        Column("threshold", "threshold", "threshold"),
        Column("calibration", "n_calibration", "int"),
        Column("model", "model"),
        Column("settings", "config"),
    ),
    _run_rows,
    "No run yet: ringfence score",
)
THRESHOLDS = TableView(
    "thresholds",
    "Thresholds",
    (
        Column("run", "seq", "run"),
        Column("NodeEx", "threshold_node", "threshold"),
        Column("EdgeEx", "threshold_edge", "threshold"),
        Column("naive", "threshold_naive", "threshold"),
        Column("calibration", "n_calibration", "int"),
        Column("effective", "effective_calibration", "num"),
    ),
    _run_rows,
)
DRIFT = TableView(
    "drift",
    "Drift by run",
    (
        Column("run", "seq", "run"),
        Column("distance of scores", "distance", "num"),
        Column("new classes watched", "new", "int"),
        Column("mean p", "mean_p", "num"),
    ),
    _drift_rows,
)
MODELS = TableView(
    "models",
    "Models",
    (
        Column("version", "version"),
        Column("state", "state"),
        Column("trained", "trained_ns", "time"),
        Column("network", "network"),
        Column("classes", "class_count", "int"),
        Column("train", "train", "int"),
        Column("validation", "validation", "int"),
        Column("calibration", "calibration", "int"),
        Column("weights", "weights", "hash"),
    ),
    _model_rows,
    "No model yet: ringfence train",
)
