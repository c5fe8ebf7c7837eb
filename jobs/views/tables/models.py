"""Tables of model versions: their data, their results, their shadow sets."""

from __future__ import annotations

from dataclasses import asdict

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import ModelRecord, as_row
from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary, read_shadows
from ringfence.jobs.lifecycle.versions import read_versions
from ringfence.jobs.views.tables.model import Cells, Column, Rows, TableView


def _version_rows(queries: ProjectQueries) -> Rows:
    """Newest first, with their results so far."""
    trained = {model.version: model.trained_ns for model in queries.models()}
    versions = read_versions(queries.store, queries.project).versions
    return [
        version.as_json() | {"trained_ns": trained[version.version]}
        for version in reversed(versions)
    ]


def _model_rows(queries: ProjectQueries) -> Rows:
    return [_model_cells(model) for model in reversed(queries.models())]


def _model_cells(model: ModelRecord) -> Cells:
    return {
        **as_row(model),
        "network": model.network,
        "class_count": len(model.classes),
        "weights": model.weights_sha256 or "",
        **model.counts,
    }


def _shadow_rows(queries: ProjectQueries) -> Rows:
    return [
        _shadow_cells(shadow) for shadow in read_shadows(queries.store, queries.project).values()
    ]


def _shadow_cells(version: ShadowSummary) -> Cells:
    difference = version.coverage_difference
    reach = (
        "" if difference is None else f"{100 * difference.low:+.1f} to {100 * difference.high:+.1f}"
    )
    return asdict(version) | {"reach": reach, "failed": version.failed or ""}


VERSIONS = TableView(
    "versions",
    "Versions",
    (
        Column("version", "version", "model", "Name of the version; the link has its card."),
        Column("state", "state", "state", "Candidate, active or retired."),
        Column("trained", "trained_ns", "time", "When it was trained, in UTC."),
        Column("network", "network", "text", "The kind of network.", extra=True),
        Column("classes", "classes", "int", "How many classes it knows.", extra=True),
        Column("train", "train", "int", "Labelled nodes that it was trained on.", extra=True),
        Column(
            "validation", "validation", "int", "Labelled nodes that ended the training.", extra=True
        ),
        Column(
            "calibration", "calibration", "int", "Labelled nodes that it is calibrated with.",
            extra=True,
        ),
        Column(
            "holdout", "holdout", "int", "Labelled nodes kept for comparing versions.", extra=True
        ),
        Column(
            "accuracy", "accuracy", "num", "Share of calibration nodes it got right at training."
        ),
        Column("runs", "runs", "int", "Runs that it scored."),
        Column("evaluated", "evaluated", "int", "Nodes that got their set from it.", extra=True),
        Column("known", "known", "int", "Those of them whose class is known by now."),
        Column("covered", "coverage", "percent", "Share of these whose set holds the class."),
        Column("verdict", "verdict", "verdict", "The worst word about its promise so far."),
    ),
    _version_rows,
    "Nothing is trained yet: ringfence train",
)  # fmt: skip
MODELS = TableView(
    "models",
    "Models",
    (
        Column("version", "version", "text", "Name of the version."),
        Column("state", "state", "text", "Candidate, active or retired."),
        Column("trained", "trained_ns", "time", "When it was trained, in UTC."),
        Column("network", "network", "text", "The kind of network."),
        Column("classes", "class_count", "int", "How many classes it knows."),
        Column("train", "train", "int", "Labelled nodes that it was trained on.", extra=True),
        Column(
            "validation", "validation", "int", "Labelled nodes that ended the training.", extra=True
        ),
        Column("calibration", "calibration", "int", "Labelled nodes that it is calibrated with."),
        Column("weights", "weights", "hash", "Hash of the weights' file.", extra=True),
    ),
    _model_rows,
    "No model yet: ringfence train",
)
SHADOWS = TableView(
    "shadows",
    "Shadow sets of candidates, beside the sets in force on the same nodes",
    (
        Column("version", "version", "text", "Name of the candidate."),
        Column("runs", "runs", "int", "Runs that it made shadow sets in.", extra=True),
        Column("nodes", "nodes", "int", "Nodes with a shadow set.", extra=True),
        Column("known", "known", "int", "Those of them whose class is known."),
        Column("coverage", "coverage", "percent", "Share of these that shadow sets cover."),
        Column("in force", "active_coverage", "percent", "Share that the sets in force cover."),
        Column("difference in points", "reach", "text", "The 95 % interval of the difference."),
        Column("average size", "mean_size", "num", "Average number of classes in a shadow set."),
        Column("size in force", "active_mean_size", "num", "The same of the sets in force."),
        Column("last run", "last_run", "run", "The newest run that it took part in.", extra=True),
        Column("failed", "failed", "text", "Why that run has no shadow sets; else empty."),
    ),
    _shadow_rows,
    "No candidate has made shadow sets: [model] shadow = true",
)
