"""The figures of the paper's main part: thresholds, coverage over time, set sizes, grids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, wasserstein_distance

from ringfence.jobs.reproduce.columns import (
    arrival_curve,
    chosen_steps,
    compute_sets,
    fixed_curve,
    run_of,
)
from ringfence.jobs.reproduce.figures.curves import curves_panel
from ringfence.jobs.reproduce.protocol import Time
from ringfence.jobs.reproduce.published import ALPHA
from ringfence.jobs.reproduce.sequence_runs import GROUP, Plan, Results
from ringfence.jobs.views.charts.model import COLOURS, Band, Bars, Figure, Grid, Line, Panel
from ringfence.models.conformal.rank import rank
from ringfence.models.conformal.row_thresholds import row_thresholds
from ringfence.models.guarantee.law import coverage_band
from ringfence.models.sequences.replay import Requests, replay
from ringfence.models.sequences.timeline import SequenceRule, true_scores_over_time

__all__ = ["coverage_figure", "grids_figure", "sizes_figure", "threshold_figure"]

Floats = NDArray[np.float64]
NODE: tuple[SequenceRule, ...] = ("node", "naive")
EDGE: tuple[SequenceRule, ...] = ("edge", "edge_exact", "node", "naive")
RANGE = (0.8, 1.0)


def threshold_figure(plan: Plan, name: str) -> Figure:
    """Thresholds against the oracle's quantile, scores at some times, EMD over time (Fig. 1)."""
    data = plan.load(name)
    model = plan.model(data, 0)
    run = run_of(plan, data, model, "node", 0)
    rows = replay(model.state, data.x, run.sequence, watched=np.arange(data.nodes))
    scores = true_scores_over_time(rows, run.sequence, data.y, run.score)
    known = scores[run.sequence.calibration]  # [n, steps + 1]
    test = scores[run.arriving]
    limits = row_thresholds(known.T.copy(), ALPHA)
    steps = chosen_steps(run, 300)
    sorted_test = [np.sort(test[~np.isnan(test[:, t]), t]) for t in steps]
    heat = np.stack([np.quantile(column, np.linspace(0, 1, 200)) for column in sorted_test], axis=1)
    oracle = np.array([np.quantile(column, ALPHA) for column in sorted_test])
    x = steps.astype(float)
    share = [
        np.searchsorted(c, limits[t]) / len(c) for c, t in zip(sorted_test, steps, strict=True)
    ]
    naive = [np.searchsorted(c, limits[0]) / len(c) for c in sorted_test]
    return Figure(
        "threshold",
        f"Thresholds and the shift of scores, {data.title}, GCN",
        "Upper left: test scores of the true class at each step, sorted from low to high; the "
        "height of a line is the share of test nodes below that threshold, i.e. not covered. The "
        f"oracle's is {ALPHA:g} by definition; NodeEx stays near it, naive sinks. Upper right: the "
        "same thresholds as scores. Lower left: scores of the calibration nodes at some steps: "
        "they move as the graph grows. Lower right: earth mover's distance from the calibration "
        "scores at step 0, smoothed over 10 points: calibration and test nodes shift together, "
        "which is why recalibrating works.",
        (
            Panel(
                "share of test nodes below the threshold", "step", "share of test nodes",
                grid=Grid(heat, (x[0], x[-1]), (0.0, 1.0), "score of the true class"),
                lines=(
                    Line(x, np.full(len(x), ALPHA), "oracle", "#ffffff", shape="dashes"),
                    Line(x, np.array(share), "NodeEx", "#7ec8ff"),
                    Line(x, np.array(naive), "naive", "#ff9d7a"),
                ),
            ),
            Panel(
                "thresholds", "step", "score",
                lines=(
                    Line(x, oracle, "oracle", COLOURS["theory"], shape="dashes"),
                    Line(x, limits[steps], "NodeEx", COLOURS["NodeEx"]),
                    Line(x, np.full(len(x), limits[0]), "naive", COLOURS["naive"]),
                ),
            ),
            _distributions(known, steps),
            _distances(known, test, steps),
        ),
        columns=2,
    )  # fmt: skip


def _distributions(known: Floats, steps: NDArray[np.int64]) -> Panel:
    bins = np.linspace(-1.0, 0.0, 21)
    times = [0, *steps[np.linspace(len(steps) // 4, len(steps) - 1, 4).astype(int)]]
    shades = ("#c8452f", "#e09f3e", "#7a9e7e", "#3f88c5", "#1b3a5b")
    centre = (bins[:-1] + bins[1:]) / 2
    lines = tuple(
        Line(centre, np.cumsum(np.histogram(known[:, t], bins)[0]) / len(known), f"step {t}", shade)
        for t, shade in zip(times, shades, strict=True)
    )
    return Panel("calibration scores at some steps", "score", "cumulative share", lines=lines)


def _distances(known: Floats, test: Floats, steps: NDArray[np.int64]) -> Panel:
    start = known[:, 0]

    def distance(table: Floats, step: int) -> float:
        column = table[:, step]
        return float(wasserstein_distance(start, column[~np.isnan(column)]))

    x = steps.astype(float)
    calibration = np.array([distance(known, t) for t in steps])
    others = np.array([distance(test, t) for t in steps])
    kernel = np.ones(10) / 10
    middle = x[5:-4]
    return Panel(
        "earth mover's distance from step 0", "step", "EMD",
        lines=(
            Line(middle, np.convolve(calibration, kernel, "valid"), "calibration", "#1f6fb4"),
            Line(middle, np.convolve(others, kernel, "valid"), "test", "#e09f3e"),
        ),
    )  # fmt: skip


def coverage_figure(plan: Plan, name: str, result: Results) -> Figure:
    """Coverage over time and the distribution at node-specific times (Fig. 2)."""
    data = plan.load(name)
    model = plan.model(data, 0)
    nodes = [run_of(plan, data, model, "node", i) for i in range(GROUP["node"])]
    edges = [run_of(plan, data, model, "edge", i) for i in range(GROUP["edge"])]
    n, m = len(nodes[0].sequence.calibration), len(nodes[0].arriving)
    on_arrival = [arrival_curve(data, model, run, NODE) for run in nodes]
    at_steps = [fixed_curve(data, model, run, NODE) for run in nodes]
    with_band = [
        _with_band(curves_panel(title, curves, NODE, y_range=RANGE), n)
        for title, curves in (
            ("node sequences, on arrival", on_arrival),
            ("node sequences, at a fixed time", at_steps),
        )
    ]
    edge_arrival = [arrival_curve(data, model, run, ("edge", "node", "naive")) for run in edges]
    edge_fixed = [fixed_curve(data, model, run, EDGE) for run in edges]
    return Figure(
        "coverage",
        f"Coverage over time, {data.title}, GCN",
        "Faint: single sequences (10 by nodes, 15 by edges). Solid: their mean. Band: 95 % of "
        "single sequences lie in it at each step if the theory holds. Right: coverages of "
        f"{len(result.node)} sequences, with each node evaluated at a random time of its own and "
        "all at the last step, beside the beta-binomial law. On an edge sequence EdgeEx with the "
        "paper's test weight 1 covers more and more as degrees grow; the node's own 1 / degree "
        "(exact) does not.",
        (
            *with_band,
            _distribution(result, "own", n, m),
            curves_panel(
                "edge sequences, on arrival", edge_arrival, ("edge", "node", "naive"), y_range=RANGE
            ),
            curves_panel("edge sequences, at a fixed time", edge_fixed, EDGE, y_range=RANGE),
            _distribution(result, "last", n, m),
        ),
        columns=3,
    )


def _with_band(panel: Panel, n: int) -> Panel:
    x = np.asarray(next(line for line in panel.lines if not line.faint).x, dtype=float)
    bands = np.array([coverage_band(n, max(int(step), 1), ALPHA) for step in x])
    band = Band(x, bands[:, 0], bands[:, 1], "95 % band, one sequence", COLOURS["NodeEx"])
    return Panel(
        panel.title, panel.x_label, panel.y_label, lines=panel.lines, bands=(band,),
        levels=panel.levels, y_range=panel.y_range,
    )  # fmt: skip


def _distribution(result: Results, time: Time, n: int, m: int) -> Panel:
    """Coverages of all sequences as a histogram, with the exact law over it."""
    bins = np.linspace(0.80, 1.0, 26)
    width = float(bins[1] - bins[0])
    centre = (bins[:-1] + bins[1:]) / 2
    missed = rank(n, ALPHA)
    law = betabinom(m, n + 1 - missed, missed)
    expected = np.diff(law.cdf(np.floor(bins * m)))
    bars = tuple(
        Bars(centre, _shares(result, time, rule, bins), width, label, COLOURS[label])
        for rule, label in (("node", "NodeEx"), ("naive", "naive"))
    )
    title = {"own": "each node at a random time", "last": "all nodes at the last step"}[time]
    return Panel(
        title, "coverage of one sequence", "share of sequences", bars=bars,
        lines=(Line(centre, expected, "theory", COLOURS["theory"]),),
    )  # fmt: skip


def _shares(result: Results, time: Time, rule: str, bins: Floats) -> Floats:
    shares = [record[time][rule]["covered"] / record["m"] for record in result.node]
    return np.asarray(np.histogram(shares, bins)[0] / max(len(shares), 1))


def sizes_figure(plan: Plan, name: str) -> Figure:
    """Set size and singleton hits over time (Fig. 3)."""
    data = plan.load(name)
    model = plan.model(data, 0)
    runs = [run_of(plan, data, model, "node", i) for i in range(GROUP["node"])]
    curves = [fixed_curve(data, model, run, NODE) for run in runs]
    return Figure(
        "sizes",
        f"Set size and singleton hits over time, {data.title}, GCN",
        "All nodes that are there, evaluated at each step; 10 node sequences. Naive's surplus of "
        "coverage is paid for with larger sets and fewer singletons that hold the true class.",
        (
            curves_panel("mean set size (lower is better)", curves, NODE, "size"),
            curves_panel("singleton hits (higher is better)", curves, NODE, "hit"),
        ),
    )


def grids_figure(plan: Plan, name: str, cells: int = 300) -> Figure:
    """1 - C, set sizes and singleton hits of every node at every step (every k-th shown)."""
    data = plan.load(name)
    model = plan.model(data, 0)
    run = run_of(plan, data, model, "node", 0)
    nodes = run.arriving[np.argsort(run.sequence.node_step[run.arriving])]
    nodes = nodes[np.unique(np.linspace(0, len(nodes) - 1, cells).astype(int))]
    steps = chosen_steps(run, cells)
    at, who = np.nonzero(run.sequence.node_step[nodes][None, :] <= steps[:, None])
    evaluated = compute_sets(data, model, run, Requests(nodes[who], steps[at]), NODE)
    row = np.full(data.nodes, -1)
    row[nodes] = np.arange(len(nodes))
    place = (row[evaluated.node], np.searchsorted(steps, evaluated.step))
    extent = (float(steps[0]), float(steps[-1]))

    def grid(values: NDArray[np.generic], title: str, label: str, scale: str) -> Panel:
        table = np.full((len(nodes), len(steps)), np.nan)
        table[place] = values
        return Panel(
            title,
            "step",
            "nodes in order of arrival",
            grid=Grid(table, extent, extent, label, scale),
        )

    panels = [
        grid(values, f"{label}: {what}", unit, scale)
        for rule, label in ((NODE[0], "NodeEx"), (NODE[1], "naive"))
        for values, what, unit, scale in (
            (~evaluated.covered[rule], "1 - C", "missed", "Reds"),
            (evaluated.size[rule], "set size", "classes", "viridis"),
            (evaluated.hit[rule], "singleton hits", "hit", "Greens"),
        )
    ]
    shares = {rule: float(evaluated.covered[rule].mean()) for rule in NODE}
    return Figure(
        "grids",
        f"Every node at every step, {data.title}, GCN",
        f"One node sequence; every {len(run.arriving) // len(nodes)}th node and step is shown. A "
        f"node's row begins when it arrives. Over the grid NodeEx covers {shares['node']:.3f}, "
        f"naive {shares['naive']:.3f}.",
        tuple(panels),
        columns=3,
    )
