"""Curves of several sequences as lines: single ones faint, their mean solid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ringfence.jobs.reproduce.columns import NAMES, Curve
from ringfence.jobs.views.charts.model import COLOURS, Level, Line, Panel
from ringfence.models.sequences.timeline import SequenceRule

__all__ = ["TARGET", "curves_panel", "lines_of"]

TARGET = Level(0.9, "promised 90 %")
Measure = Literal["coverage", "size", "hit"]
Y_LABELS: dict[Measure, str] = {
    "coverage": "share covered",
    "size": "mean set size",
    "hit": "singleton-hit ratio",
}


def lines_of(
    curves: Sequence[Curve],
    rule: SequenceRule,
    measure: Measure = "coverage",
    *,
    label: str | None = None,
    colour: str | None = None,
    single: bool = True,
    shape: Literal["line", "dashes"] = "line",
) -> tuple[Line, ...]:
    """One faint line per sequence and one solid line for their mean; no ``label``, no legend."""
    name = NAMES[rule] if label is None else label
    shade = colour or COLOURS[NAMES[rule]]
    x = np.mean([curve.steps for curve in curves], axis=0)
    values = np.array([getattr(curve, measure)[rule] for curve in curves])
    faint = [
        Line(curve.steps.astype(float), row, name, shade, faint=True)
        for curve, row in zip(curves, values, strict=True)
        if single
    ]
    return (*faint, Line(x, values.mean(axis=0), name, shade, shape))


def curves_panel(
    title: str,
    curves: Sequence[Curve],
    rules: Sequence[SequenceRule],
    measure: Measure = "coverage",
    *,
    y_range: tuple[float, float] | None = None,
    x_label: str = "step",
) -> Panel:
    """The usual panel: every rule in its colour, over the steps."""
    return Panel(
        title,
        x_label,
        Y_LABELS[measure],
        lines=tuple(line for rule in rules for line in lines_of(curves, rule, measure)),
        levels=(TARGET,) if measure == "coverage" else (),
        y_range=y_range,
    )
