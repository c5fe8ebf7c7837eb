"""Two runs side by side: their outcomes, by class, where their time went, what else differs."""

from __future__ import annotations

from ringfence.connector.records import Run
from ringfence.connector.store.queries.outcome import ClassOutcome
from ringfence.connector.times import format_time
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.dashboard.pages.run import (
    MAX_LISTED_CLASSES,
    classes_of,
    column_title,
    facts_of,
    find_run,
    in_order,
)
from ringfence.jobs.views.explain import format_column
from ringfence.jobs.views.outcome import describe_change, run_figures


def build(queries: Queries, a: int, b: int) -> Values:
    """Return the outcomes of run `a` and run `b`, and the columns in which they differ or agree."""
    first, second = find_run(queries, a), find_run(queries, b)
    pairs = [
        (name, run, other)
        for (name, run), (_, other) in zip(facts_of(first), facts_of(second), strict=True)
    ]
    same = [name for name, value, other in pairs if value == other]
    return {
        "title": f"Run {first.seq} and run {second.seq}",
        "sentence": _describe(first, second),
        "a": first.seq,
        "b": second.seq,
        "outcomes": _outcomes(queries, first, second),
        "verdicts": [_verdict(queries, run) for run in (first, second)],
        "classes": _classes(queries, first, second),
        "steps": [
            (step, _seconds(first, step), _seconds(second, step))
            for step in in_order({**first.timings, **second.timings})
        ],
        "differences": [
            (column_title(name), format_column(name, value), format_column(name, other))
            for name, value, other in pairs
            if value != other
        ],
        "same": ", ".join(map(column_title, same)) or "nothing",
        "figures": [],
    }


def _describe(first: Run, second: Run) -> str:
    differ = [
        word
        for word, value, other in (
            ("settings", first.config, second.config),
            ("model", first.model, second.model),
        )
        if value != other
    ]
    made = f"Decided {format_time(first.decided_ns)} and {format_time(second.decided_ns)}"
    if not differ:
        return f"{made}, by the same settings and the same model."
    return f"{made}; they differ in {' and '.join(differ)}, so compare with care."


def _outcomes(queries: Queries, first: Run, second: Run) -> list[Values]:
    figures = run_figures(first, queries.coverage_of_run(first.seq))
    other = run_figures(second, queries.coverage_of_run(second.seq))
    return [
        {"name": a.name, "about": a.about, "a": a, "b": b, "change": describe_change(a, b)}
        for a, b in zip(figures, other, strict=True)
    ]


def _verdict(queries: Queries, run: Run) -> str:
    counted = queries.coverage_of_run(run.seq)
    return counted.verdict if counted else "not audited yet"


def _classes(queries: Queries, first: Run, second: Run) -> list[Values]:
    """Share of sets that hold each class, and its coverage, in both runs."""
    sides = [
        {class_row.name: class_row for class_row in classes_of(queries, run)}
        for run in (first, second)
    ]
    names = list(dict.fromkeys(name for side in sides for name in side))
    return [
        {
            "name": name,
            "sides": [
                _side(side.get(name), run) for side, run in zip(sides, (first, second), strict=True)
            ],
        }
        for name in names[:MAX_LISTED_CLASSES]
    ]


def _side(class_row: ClassOutcome | None, run: Run) -> Values:
    if class_row is None:
        return {"share": 0.0, "coverage": None, "known": 0}
    share = class_row.in_sets / run.n_evaluated if run.n_evaluated else None
    return {"share": share, "coverage": class_row.coverage, "known": class_row.known}


def _seconds(run: Run, step: str) -> str:
    seconds = run.timings.get(step)
    return "–" if seconds is None else f"{seconds:.3f}"


PAGE = Page(
    "comparison", "Comparison", "/runs/compare", "compare.html", build, part_of="/runs",
)  # fmt: skip
