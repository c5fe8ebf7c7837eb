"""All figures and the tables beyond the paper, drawn one by one, from the cache where possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ringfence.connector.progress import Progress
from ringfence.jobs.reproduce.beyond import growing_figure, monitor_figure, small_n_table
from ringfence.jobs.reproduce.figures.appendix import (
    calibration_figure,
    classes_figure,
    networks_figure,
    scores_figure,
    splits_figure,
)
from ringfence.jobs.reproduce.figures.comparisons import naps_figure, subgraphs_figure
from ringfence.jobs.reproduce.figures.main_part import (
    coverage_figure,
    grids_figure,
    sizes_figure,
    threshold_figure,
)
from ringfence.jobs.reproduce.sequence_runs import Plan, Results
from ringfence.jobs.reproduce.tables import TextTable
from ringfence.jobs.views.charts.model import Figure
from ringfence.jobs.views.renderers.matplotlib import write_png

__all__ = ["Drawn", "draw_all"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Figures, whose PNG files are written, and tables beyond the paper's."""

    figures: list[Figure] = field(default_factory=list)
    tables: list[TextTable] = field(default_factory=list)


def draw_all(plan: Plan, results: Sequence[Results], output: Path, report: Progress) -> Drawn:
    """Draw every figure to ``output``/figures.

    The paper shows most of them for Cora-ML and CiteSeer; where one of the two was not run, the
    first dataset that was takes its place.
    """
    by_name = {result.name: result for result in results}
    cora = "cora_ml" if "cora_ml" in by_name else next(iter(by_name))
    citeseer = "citeseer" if "citeseer" in by_name else cora
    makers: list[Callable[[], Figure | TextTable]] = [
        lambda: threshold_figure(plan, citeseer),
        lambda: coverage_figure(plan, cora, by_name[cora]),
        lambda: sizes_figure(plan, citeseer),
        lambda: grids_figure(plan, citeseer),
        lambda: scores_figure(plan, citeseer),
        lambda: networks_figure(plan, cora),
        lambda: splits_figure(plan, cora),
        lambda: classes_figure(plan, citeseer),
        lambda: calibration_figure(plan, cora),
        lambda: naps_figure(plan, cora),
        lambda: subgraphs_figure(plan, cora),
        lambda: small_n_table(plan, citeseer),
        lambda: growing_figure(plan, citeseer),
        lambda: monitor_figure(plan, citeseer),
    ]
    drawn = Drawn()
    for done, make in enumerate(makers):
        report("figures", done, len(makers))
        made = make()
        if isinstance(made, TextTable):
            drawn.tables.append(made)
            continue
        write_png(made, output / "figures" / f"{made.name}.png")
        drawn.figures.append(made)
    report("figures", len(makers), len(makers))
    return drawn
