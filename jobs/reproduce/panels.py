"""What a figure shows, apart from how it is drawn: the same panels become PNG and HTML."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLOURS", "Band", "Bars", "Figure", "Grid", "Level", "Line", "Panel"]

Floats = NDArray[np.float64]

COLOURS = {
    "NodeEx": "#1f6fb4",
    "EdgeEx": "#2a8c4a",
    "EdgeEx, exact": "#d99a00",
    "naive": "#c8452f",
    "theory": "#555555",
    "target": "#999999",
}
"""One colour per rule, in every figure (told apart by readers who see no red or green, too)."""


@dataclass(frozen=True, slots=True)
class Line:
    """y over x; ``faint`` ones are single sequences and have no name in the legend."""

    x: Floats
    y: Floats
    label: str
    colour: str
    faint: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """Everything between low and high."""

    x: Floats
    low: Floats
    high: Floats
    label: str
    colour: str


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram or a bar chart: bars of ``width`` centred at x."""

    x: Floats
    height: Floats
    width: float
    label: str
    colour: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A matrix as an image; row 0 is at the bottom, nan stays white."""

    values: Floats
    x: tuple[float, float]
    y: tuple[float, float]
    label: str
    scale: str = "viridis"


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line, such as the promised coverage."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes; ``ticks`` names places on the x axis."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...] = ()
    bands: tuple[Band, ...] = ()
    bars: tuple[Bars, ...] = ()
    grid: Grid | None = None
    levels: tuple[Level, ...] = ()
    y_range: tuple[float, float] | None = None
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels in rows of ``columns``, with the words below the figure."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 2
