"""What a figure shows, apart from how it is drawn: the same panels become SVG, plotly and PNG.

Dashboard, report and reproduction use this one model; `jobs.views.renderers` draws it. A colour is
a role of the theme (accent, second, muted, warn), which is right by day and by night, or a fixed
`#rrggbb`.

>>> line = Line([1, 2], [0.9, None], "coverage")
>>> Figure("coverage", "Coverage", "Of each run.", (Panel("", "run", "covered", (line,)),)).empty
False
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.json_types import JsonObject

__all__ = ["COLOURS", "ROLES", "Band", "Bars", "Figure", "Grid", "Level", "Line", "Mark", "Panel"]

Floats = NDArray[np.float64]
Numbers = Sequence[float | None] | Floats
"""Values along an axis; None leaves a gap."""

COLOURS = {
    "NodeEx": "#1f6fb4",
    "EdgeEx": "#2a8c4a",
    "EdgeEx, exact": "#d99a00",
    "naive": "#c8452f",
    "theory": "#555555",
    "target": "#999999",
}
"""One colour per rule, in every figure (told apart by readers who see no red or green, too)."""

ROLES = {"accent": "#1f6fb4", "second": "#d99a00", "muted": "#777777", "warn": "#c8452f"}
"""The theme's roles, with the colour that each has where there is no theme (PNG, one HTML page)."""


@dataclass(frozen=True, slots=True)
class Line:
    """y over x; ``faint`` ones are single sequences and have no name in the legend.

    ``names`` say what each point is, such as the number of a run.
    """

    x: Numbers
    y: Numbers
    label: str
    colour: str = "accent"
    shape: Literal["line", "points", "dashes", "step"] = "line"
    faint: bool = False
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """Everything between low and high."""

    x: Numbers
    low: Numbers
    high: Numbers
    label: str
    colour: str = "accent"


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram or a bar chart: bars of ``width`` centred at x; None fits them to the room."""

    x: Numbers
    height: Numbers
    width: float | None
    label: str
    colour: str = "accent"


@dataclass(frozen=True, slots=True)
class Grid:
    """A heatmap; row 0 of the values is at the bottom, nan stays white."""

    values: Floats
    x: tuple[float, float]
    y: tuple[float, float]
    label: str
    scale: str = "viridis"


@dataclass(frozen=True, slots=True)
class Level:
    """A line across at one value, such as the promised coverage."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A line upwards at one place along x, with a letter on top, such as P for a promotion."""

    x: float
    letter: str
    words: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes; ``ticks`` names places on the x axis.

    ``percent`` writes values as per cent; ``sideways`` puts the named places below one another and
    the values along; ``dates`` are moments along x, in milliseconds since 1970.
    """

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
    percent: bool = False
    sideways: bool = False
    dates: bool = False
    marks: tuple[Mark, ...] = ()

    @property
    def series(self) -> tuple[Line | Bars, ...]:
        """Lines and bars: what has a name and a colour of its own."""
        return (*self.lines, *self.bars)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return self.grid is None and not any(len(drawn.x) for drawn in self.series)


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels in rows of ``columns``, with the text below the figure."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 2

    @property
    def empty(self) -> bool:
        """Whether no panel has anything to draw."""
        return all(panel.empty for panel in self.panels)

    def as_dict(self) -> JsonObject:
        """Plain values, for JSON."""
        return asdict(self)


def named_places(names: Sequence[str]) -> tuple[tuple[float, str], ...]:
    """Return the ticks that give each place 0, 1, 2, … its name.

    >>> named_places(["a", "b"])
    ((0, 'a'), (1, 'b'))
    """
    return tuple(enumerate(names))


def shortened(name: str, most: int = 28) -> str:
    """Return a name as far as a picture has room for it.

    >>> shortened("mule"), shortened("a class whose name is a whole sentence")
    ('mule', 'a class whose name is a who…')
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"
