"""One run: timings per step and its whole record, with the hash of the weights."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import HTTPException

from ringfence.connector.records import Run
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.views import charts
from ringfence.jobs.views.explain import format_column

STEPS = ("recover", "load model", "read", "forward", "compute", "decide", "write graph")
NOT_IN_RECORD = ("calibration_scores", "watch", "timings", "notes", "project")
MAX_SEQ = 2**62  # what every database's integers hold


def build(queries: Queries, seq: int) -> Values:
    """Return one run, or answer that there is none of this number."""
    run = find_run(queries, seq)
    record = [(column_title(name), format_column(name, value)) for name, value in facts_of(run)]
    weights = {model.version: model.weights_sha256 for model in queries.models()}
    return {
        "title": f"Run {run.seq}",
        "sentence": f"{run.n_evaluated:,} nodes got their sets by {run.rule} at alpha = "
        f"{run.alpha:g}, with {run.n_calibration:,} calibration nodes.",
        "notes": list(run.notes),
        "record": [*record, ("weights", weights.get(run.model) or "–")],
        "figures": [charts.step_seconds(in_order(run.timings))],
    }


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
    return dict(sorted(seconds.items(), key=lambda item: place.get(item[0], len(STEPS))))


def column_title(name: str) -> str:
    """Return a column's name as text.

    >>> column_title("watermark_to_ns"), column_title("n_already_known"), column_title("seq")
    ('watermark to', 'already known', 'run')
    """
    if name == "seq":
        return "run"
    return name.removesuffix("_ns").removeprefix("n_").replace("_", " ")


PAGE = Page("run", "Run", "/runs/{seq}", "run.html", build, part_of="/runs", pictured=False)
