"""One run: its outcome, by class and by size of the sets, where its time went, its record."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from fastapi import HTTPException

from ringfence.connector.records import Run, StoredCoverage
from ringfence.connector.store.queries.outcome import (
    MAX_COUNTED_NODES,
    ClassOutcome,
    class_outcomes,
)
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.retention.removals import removal_of
from ringfence.connector.times import format_time
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values, as_sentence
from ringfence.jobs.views import charts
from ringfence.jobs.views.explain import format_column
from ringfence.jobs.views.outcome import run_figures
from ringfence.jobs.views.version_names import short_versions

STEPS = ("recover", "load model", "read", "forward", "compute", "decide", "write graph")
NOT_IN_RECORD = ("calibration_scores", "watch", "timings", "notes", "project")
MAX_SEQ = 2**62  # what every database's integers hold
MAX_LISTED_CLASSES = 40


def build(queries: Queries, seq: int) -> Values:
    """Return one run, or answer that there is none of this number."""
    run = find_run(queries, seq)
    counted = queries.coverage_of_run(seq)
    classes = classes_of(queries, run)
    weights = {model.version: model.weights_sha256 for model in queries.models()}
    record = [(column_title(name), format_column(name, value)) for name, value in facts_of(run)]
    return {
        "title": f"Run {run.seq}",
        "verdict": counted.verdict if counted else "not audited yet",
        "sentence": _describe_coverage(counted),
        "made": f"Decided {format_time(run.decided_ns)} by {run.rule} at alpha = {run.alpha:g} "
        f"with model {short_versions(run.model)}.",
        "notes": list(run.notes),
        "facts": [
            (figure.name.capitalize(), figure.text, figure.note)
            for figure in run_figures(run, counted)
        ],
        "classes": [_class_line(class_name, run) for class_name in classes[:MAX_LISTED_CLASSES]],
        "classes_note": _describe_classes(run, len(classes)),
        "removed": _describe_removal(queries, seq),
        "before": _neighbour(queries, seq - 1),
        "after": _neighbour(queries, seq + 1),
        "seq": seq,
        "record": [*record, ("weights", weights.get(run.model) or "–")],
        "figures": [
            charts.set_size_shares(counted, run.n_evaluated),
            charts.step_seconds(in_order(run.timings)),
        ],
    }


def classes_of(queries: ProjectQueries, run: Run) -> list[ClassOutcome]:
    """Return the classes of a run; none of a run that is too large to be counted for a page."""
    if run.n_evaluated > MAX_COUNTED_NODES:
        return []
    return class_outcomes(queries, run.seq)


def find_run(queries: ProjectQueries, seq: int) -> Run:
    """Return a run; the answer is 404 where there is none."""
    run = queries.run(seq) if 0 <= seq < MAX_SEQ else None
    if run is None:
        raise HTTPException(404, f"there is no run {seq}")
    return run


def facts_of(run: Run) -> list[tuple[str, object]]:
    """Return the columns of a run that its record shows, with their values."""
    return [(name, value) for name, value in as_row(run).items() if name not in NOT_IN_RECORD]


def in_order(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of a run's steps as the run takes them.

    >>> in_order({"decide": 0.2, "read": 0.1})
    {'read': 0.1, 'decide': 0.2}
    """
    place = {step: i for i, step in enumerate(STEPS)}
    return dict(
        sorted(seconds.items(), key=lambda item: place.get(item[0].partition(":")[0], len(STEPS)))
    )


def column_title(name: str) -> str:
    """Return a column's name as text.

    >>> column_title("watermark_to_ns"), column_title("n_already_known"), column_title("seq")
    ('watermark to', 'already known', 'run')
    """
    if name == "seq":
        return "run"
    return name.removesuffix("_ns").removeprefix("n_").replace("_", " ")


def _describe_coverage(counted: StoredCoverage | None) -> str:
    if counted is None:
        return "No audit has counted this run yet. Run: ringfence audit"
    return as_sentence(counted.words)


def _describe_classes(run: Run, listed: int) -> str:
    if run.n_evaluated > MAX_COUNTED_NODES:
        return f"A run of more than {MAX_COUNTED_NODES:,} nodes is not counted by class here."
    if listed > MAX_LISTED_CLASSES:
        return f"The {MAX_LISTED_CLASSES} classes in most sets, of {listed:,}."
    return ""


def _describe_removal(queries: ProjectQueries, seq: int) -> str:
    """What retention removed of a run, and when; empty where all of it is there."""
    removed = removal_of(queries.store, queries.project, seq)
    if removed is None:
        return ""
    return (
        f"Scores, p-values not shown in the graph and {removed.entries:,} worklist rows were "
        f"removed by retention ({removed.keep_days:g} days), {format_time(removed.at_ns)}."
    )


def _class_line(outcome: ClassOutcome, run: Run) -> Values:
    wanted = {"class": outcome.name, "run": run.seq, "known": "any", "state": "any"}
    return {"outcome": outcome, "address": f"/worklist?{urlencode(wanted)}"}


def _neighbour(queries: ProjectQueries, seq: int) -> int | None:
    """The number of the run before or after, where there is one."""
    return seq if 0 <= seq < MAX_SEQ and queries.run(seq) is not None else None


PAGE = Page("run", "Run", "/runs/{seq}", "run.html", build, part_of="/runs")
