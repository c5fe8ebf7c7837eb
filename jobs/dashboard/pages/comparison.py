"""Two runs side by side: what differs between them."""

from __future__ import annotations

from ringfence.connector.records import Run
from ringfence.jobs.dashboard.dependencies import Queries
from ringfence.jobs.dashboard.pages.page import Page, Values
from ringfence.jobs.dashboard.pages.run import column_title, facts_of, find_run, in_order
from ringfence.jobs.views.explain import format_column


def build(queries: Queries, a: int, b: int) -> Values:
    """Return the columns in which run `a` and run `b` differ, and those in which they agree."""
    first, second = find_run(queries, a), find_run(queries, b)
    pairs = [
        (name, one, other)
        for (name, one), (_, other) in zip(facts_of(first), facts_of(second), strict=True)
    ]
    same = [name for name, one, other in pairs if one == other]
    alike = "config" in same and "model" in same
    return {
        "title": f"Run {first.seq} and run {second.seq}",
        "sentence": "Same settings and same model."
        if alike
        else "Settings or model differ: see config and model below.",
        "a": first.seq,
        "b": second.seq,
        "differences": [
            *(
                (column_title(name), format_column(name, one), format_column(name, other))
                for name, one, other in pairs
                if one != other
            ),
            *(
                (f"seconds: {step}", _seconds(first, step), _seconds(second, step))
                for step in in_order({**first.timings, **second.timings})
            ),
        ],
        "same": ", ".join(map(column_title, same)) or "nothing",
        "figures": [],
    }


def _seconds(run: Run, step: str) -> str:
    seconds = run.timings.get(step)
    return "–" if seconds is None else f"{seconds:.3f}"


PAGE = Page(
    "comparison", "Comparison", "/runs/compare", "compare.html", build, part_of="/runs",
    pictured=False,
)  # fmt: skip
