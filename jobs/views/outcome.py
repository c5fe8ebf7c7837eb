"""The outcome of a run as named figures: coverage, set sizes, calibration, seconds.

The Run page shows them, the comparison of two runs puts them side by side. Coverage of naive sets
never stands without their size.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.records import Run, StoredCoverage
from ringfence.jobs.views.tables.coverage import coverage_cells
from ringfence.jobs.views.tables.model import Format, cell


@dataclass(frozen=True, slots=True)
class RunFigure:
    """One figure of a run: name, value, how it is written, what it is, and a note on it."""

    name: str
    value: float | None
    format: Format
    about: str
    note: str = ""

    @property
    def text(self) -> str:
        """The value as a person reads it."""
        return cell(self.value, self.format)


def run_figures(run: Run, counted: StoredCoverage | None) -> list[RunFigure]:
    """Return the figures of a run; `counted` is its coverage row, None before an audit."""
    cells = coverage_cells(counted) if counted else {}
    known, size = cells.get("known"), cells.get("mean_size")
    naive, naive_size = cells.get("naive_coverage"), run.mean_size_naive
    seconds = sum(run.timings.values()) if run.timings else None
    slowest = max(run.timings, key=lambda step: run.timings[step]) if run.timings else ""
    return [
        RunFigure("evaluated", run.n_evaluated, "int", "Nodes that got their set in this run.",
                  f"{run.n_waiting:,} were not due yet"),
        RunFigure("known", known, "int", "Those whose class became known since.",
                  "" if counted else "no audit yet"),
        RunFigure("covered", cells.get("coverage"), "percent",
                  "Share of the known nodes whose set held their class.",
                  f"usual {cells['band']}" if cells.get("band") else ""),
        RunFigure("set size", size, "num", "Classes per set on average."),
        RunFigure("one class", cells.get("singleton_rate"), "percent",
                  "Share of the sets that hold a single class.",
                  f"{cell(cells['singleton_hit'], 'percent')} of the known ones right"
                  if cells.get("singleton_hit") is not None else ""),
        RunFigure("empty sets", cells.get("empty"), "int", "Sets without any class."),
        RunFigure("full sets", cells.get("full"), "int", "Sets that exclude nothing."),
        RunFigure("naive set size", naive_size, "num",
                  "Classes per set by the threshold of the training, never computed again.",
                  f"covered {cell(naive, 'percent')}" if naive is not None else ""),
        RunFigure("calibration nodes", run.n_calibration, "int", "Nodes that sets were judged by.",
                  f"worth {run.effective_calibration:.4g}"
                  if run.effective_calibration != run.n_calibration else ""),
        RunFigure("seconds", seconds, "num", "How long the run took.",
                  f"most in “{slowest}”" if slowest else ""),
    ]  # fmt: skip


def describe_change(before: RunFigure, after: RunFigure) -> str:
    """Return by how much a figure differs from another run's; empty if that is meaningless.

    >>> a = RunFigure("covered", 0.9, "percent", "")
    >>> b = RunFigure("covered", 0.925, "percent", "")
    >>> describe_change(a, b), describe_change(b, a), describe_change(a, a)
    ('+2.5 points', '−2.5 points', 'same')
    """
    if before.value is None or after.value is None:
        return ""
    change = after.value - before.value
    if change == 0:
        return "same"
    sign = "+" if change > 0 else "−"
    if before.format == "percent":
        return f"{sign}{100 * abs(change):.1f} points"
    return f"{sign}{cell(abs(change), 'int') if before.format == 'int' else f'{abs(change):.3g}'}"
