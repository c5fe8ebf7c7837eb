"""The figures of the paper's appendix: scores, networks, splits, classes, calibration sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringfence.jobs.reproduce.columns import Curve, fixed_curve, run_of
from ringfence.jobs.reproduce.figures.curves import (
    TARGET,
    Y_LABELS,
    Measure,
    curves_panel,
    lines_of,
)
from ringfence.jobs.reproduce.networks import DIFFUSION, forward, network_curve
from ringfence.jobs.reproduce.published import ALPHA
from ringfence.jobs.reproduce.sequence_runs import GROUP, Plan
from ringfence.jobs.views.charts.model import COLOURS, Band, Figure, Line, Panel
from ringfence.models.conformal.rank import rank
from ringfence.models.guarantee.law import coverage_band
from ringfence.models.sequences.timeline import SequenceRule

__all__ = [
    "calibration_figure",
    "classes_figure",
    "networks_figure",
    "scores_figure",
    "splits_figure",
]

NODE: tuple[SequenceRule, ...] = ("node", "naive")
NETWORKS = {"gcn": "#1f6fb4", "gat": "#d99a00", "appnp": "#2a8c4a", "mlp": "#8b5fbf"}
SHADES = ("#1f6fb4", "#d99a00", "#2a8c4a", "#8b5fbf", "#c8452f")
TWENTIETHS = "twentieths of the sequence"
FEW = 5  # sequences per network or split, where there are many of those


def scores_figure(plan: Plan, name: str) -> Figure:
    """TPS and DAPS in place of APS."""
    data = plan.load(name)
    model = plan.model(data, 0)
    runs = [run_of(plan, data, model, "node", i) for i in range(GROUP["node"])]
    threshold = [fixed_curve(data, model, run, NODE, tps=True) for run in runs]
    run_network = forward(data, model)
    diffused = [
        network_curve(data, model, run_network, "node", i, plan.seed, diffusion=DIFFUSION)
        for i in range(GROUP["node"])
    ]
    return Figure(
        "scores",
        f"Other scores, {data.title}, GCN",
        "Coverage at fixed times, 10 node sequences. Left: TPS, the probability itself. Right: "
        f"DAPS, APS diffused over the neighbours ({DIFFUSION:g}), at 20 equally spaced times. "
        "NodeEx keeps the promise with any score.",
        (
            curves_panel("TPS", threshold, NODE, y_range=(0.8, 1.0)),
            curves_panel("DAPS", diffused, NODE, y_range=(0.8, 1.0), x_label=TWENTIETHS),
        ),
    )  # fmt: skip


def networks_figure(plan: Plan, name: str) -> Figure:
    """GCN, GAT, APPNP and MLP on node and edge sequences."""
    data = plan.load(name)
    curves: dict[tuple[str, str], list[Curve]] = {}
    for network in NETWORKS:
        model = plan.model(data, 0, network)
        run = forward(data, model)
        for kind in ("node", "edge"):
            curves[network, kind] = [
                network_curve(data, model, run, kind, i, plan.seed) for i in range(FEW)
            ]
    panels = tuple(
        _networks_panel(curves, kind, measure)
        for kind in ("node", "edge")
        for measure in ("coverage", "size")
    )
    return Figure(
        "networks",
        f"Other networks, {data.title}",
        f"Means of {FEW} sequences at 20 equally spaced times. Solid: NodeEx on node sequences, "
        "EdgeEx on edge sequences. Dashed: naive. The rule keeps the promise whatever the network; "
        "the network decides how large the sets are. An MLP sees no edges, so on node sequences "
        "its scores never shift, and naive and NodeEx are one and the same.",
        panels,
    )


def _networks_panel(
    curves: dict[tuple[str, str], list[Curve]], kind: str, measure: Measure
) -> Panel:
    rule: SequenceRule = "node" if kind == "node" else "edge"
    lines: list[Line] = []
    for network, colour in NETWORKS.items():
        curve = curves[network, kind]
        label = network.upper()
        lines += lines_of(curve, rule, measure, label=label, colour=colour, single=False)
        lines += lines_of(
            curve, "naive", measure, label="", colour=colour, single=False, shape="dashes"
        )
    return Panel(
        f"{kind} sequences",
        TWENTIETHS,
        Y_LABELS[measure],
        lines=tuple(lines),
        levels=(TARGET,) if measure == "coverage" else (),
        y_range=(0.84, 1.0) if measure == "coverage" else None,
    )


def splits_figure(plan: Plan, name: str, splits: int = 5) -> Figure:
    """Several train/validation splits, on node and edge sequences."""
    data = plan.load(name)
    models = [plan.model(data, split) for split in range(splits)]

    def panel(kind: str, rule: SequenceRule, measure: Measure) -> Panel:
        lines: list[Line] = []
        for colour, curve in zip(SHADES, curves[kind], strict=False):
            place = len(lines) // 2
            label = f"split {place}"
            lines += lines_of(curve, rule, measure, label=label, colour=colour, single=False)
            lines += lines_of(
                curve, "naive", measure, label="", colour=colour, single=False, shape="dashes"
            )  # fmt: skip
        return Panel(
            f"{kind} sequences", "step", Y_LABELS[measure], lines=tuple(lines),
            levels=(TARGET,) if measure == "coverage" else (),
            y_range=(0.84, 1.0) if measure == "coverage" else None,
        )  # fmt: skip

    rules: dict[str, tuple[SequenceRule, ...]] = {"node": NODE, "edge": ("edge", "naive")}
    curves = {
        kind: [
            [
                fixed_curve(data, model, run_of(plan, data, model, kind, i), rules[kind], count=20)
                for i in range(FEW)
            ]
            for model in models
        ]
        for kind in rules
    }
    return Figure(
        "splits",
        f"Other initial splits, {data.title}, GCN",
        f"{splits} train/validation splits, means of {FEW} sequences each, evaluated at fixed "
        "times. Solid: NodeEx on node sequences, EdgeEx on edge sequences. Dashed: naive. The "
        "split moves set sizes and naive's error; what is left between the solid lines of coverage "
        f"is chance: the mean of {FEW} node sequences has a standard deviation of "
        f"{100 * _spread(models[0].calibration) / np.sqrt(FEW):.1f} %.",
        (
            panel("node", "node", "coverage"), panel("node", "node", "size"),
            panel("edge", "edge", "coverage"), panel("edge", "edge", "size"),
        ),
    )  # fmt: skip


def _spread(n: int) -> float:
    """Standard deviation of the coverage of one sequence, by the Beta law."""
    missed = rank(n, ALPHA)
    return float(np.sqrt(missed * (n + 1 - missed) / (n + 2)) / (n + 1))


def classes_figure(plan: Plan, name: str, max_classes: int = 6) -> Figure:
    """Coverage of each class: promised on average over classes only."""
    data = plan.load(name)
    model = plan.model(data, 0)
    runs = [run_of(plan, data, model, "node", i) for i in range(GROUP["node"])]
    panels = []
    for kind in range(min(max_classes, data.classes)):
        curves = [
            fixed_curve(data, model, run, NODE, only=data.y == kind, count=20) for run in runs
        ]
        share = float((data.y == kind).mean())
        panels.append(
            curves_panel(f"class {kind + 1} ({share:.0%} of nodes)", curves, NODE, y_range=(0.6, 1))
        )
    return Figure(
        "classes",
        f"Coverage by class, {data.title}, GCN",
        "Coverage at fixed times, 10 node sequences. The promise is for all nodes together, not "
        "for each class: some classes get more and some less. For a promise per class there is "
        "per-class calibration (`models/conformal/mondrian.py`).",
        tuple(panels),
        columns=3,
    )


def calibration_figure(plan: Plan, name: str, sizes: Sequence[int] = (200, 1000)) -> Figure:
    """More calibration nodes: the same mean, less scatter."""
    data = plan.load(name)
    model = plan.model(data, 0)
    panels = []
    for size in sizes:
        usable = min(size, (data.nodes - len(model.context)) // 2)
        runs = [run_of(plan, data, model, "node", i, usable) for i in range(GROUP["node"])]
        curves = [fixed_curve(data, model, run, NODE, count=20) for run in runs]
        panel = curves_panel(f"{usable} calibration nodes", curves, NODE, y_range=(0.84, 1.0))
        x = np.mean([curve.steps for curve in curves], axis=0)
        low, high = np.array([coverage_band(usable, max(int(m), 1), ALPHA) for m in x]).T
        band = Band(x, low, high, "95 % band, one sequence", COLOURS["NodeEx"])
        panels.append(
            Panel(
                panel.title, panel.x_label, panel.y_label, lines=panel.lines, bands=(band,),
                levels=panel.levels, y_range=panel.y_range,
            )
        )  # fmt: skip
    return Figure(
        "calibration",
        f"Calibration size, {data.title}, GCN",
        "Coverage at fixed times, 10 node sequences. More calibration nodes draw single sequences "
        "to 90 %, as the band says; naive only becomes more precisely wrong.",
        tuple(panels),
    )
