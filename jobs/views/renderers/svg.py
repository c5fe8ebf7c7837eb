"""Figures drawn as small SVG pictures: no script, no network, sharp on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from ringfence.jobs.views.charts.model import (
    ROLES,
    Bars,
    Figure,
    Grid,
    Line,
    Mark,
    Numbers,
    Panel,
    shortened,
)
from ringfence.jobs.views.charts.time_axis import SECOND, date_ticks

WIDE, HIGH = 640, 250  # of the picture, in its own units, like all below
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 34  # room for the axes' labels
ROW_HEIGHT = 24  # of a named place, sideways
NAME_WIDTH = 190


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, about: int = 5) -> list[float]:
        """Return round numbers within the scale.

        >>> Scale(0.0, 1.0, 0, 100).ticks()
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        """
        step = 10 ** math.floor(math.log10(max(self.high - self.low, 1e-12) / about))
        step = next(
            step * k for k in (1, 2, 5, 10, 20) if (self.high - self.low) / (step * k) <= about
        )
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(i * step, 10) for i in range(first, last + 1)]


def draw(figure: Figure) -> str:
    """Return the figure as one SVG element per panel."""
    return "".join(
        _sideways(figure, panel) if panel.sideways else _upright(figure, panel)
        for panel in figure.panels
    )


def _y_values(panel: Panel) -> list[float]:
    values = [y for line in panel.lines for y in line.y if y is not None]
    values += [y for bars in panel.bars for y in (*bars.height, 0.0) if y is not None]
    values += [y for band in panel.bands for y in (*band.low, *band.high) if y is not None]
    values += [level.y for level in panel.levels]
    values += panel.grid.y if panel.grid else ()
    return values or [0.0, 1.0]


def _x_values(panel: Panel) -> list[float]:
    values = {x for drawn in (*panel.series, *panel.bands) for x in _plain(drawn.x)}
    return sorted(values | set(panel.grid.x if panel.grid else ()))


def _plain(values: Any) -> list[Any]:
    plain: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    return plain


def _upright(figure: Figure, panel: Panel) -> str:
    values, along = _y_values(panel), _x_values(panel)
    low, high = panel.y_range or (min(values), max(values))
    y = Scale(low, high if high > low else low + 1, HIGH - BOTTOM, TOP)
    edge = 0.6 if panel.bars else 0.0
    least = 0.0 if len(along) > 1 else SECOND if panel.dates else 1.0
    x = Scale(min(along) - edge, max(along) + edge + least, LEFT, WIDE - RIGHT)
    parts = [_grid_lines(y, panel.percent), _along(x, panel, along)]
    if panel.grid:
        parts.append(_cells(panel.grid, x, y))
    for band in panel.bands:
        there = [x(value) for value in _plain(band.x)]
        top = _points(there, band.high, y)
        low_edge = _points(there[::-1], band.low[::-1], y)
        parts.append(f'<polygon {_paint("band", band.colour)} points="{top} {low_edge}"/>')
    for level in panel.levels:
        at = y(level.y)
        parts.append(f'<line class="level" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{at}" y2="{at}"/>')
    parts += [_bars(bars, [x(value) for value in _plain(bars.x)], y) for bars in panel.bars]
    parts += [_line(line, [x(value) for value in _plain(line.x)], y) for line in panel.lines]
    parts += [_mark(mark, x(mark.x)) for mark in panel.marks]
    return _frame(figure, panel, HIGH, "".join(parts))


def _sideways(figure: Figure, panel: Panel) -> str:
    high = TOP + BOTTOM + ROW_HEIGHT * len(panel.ticks)
    values = _y_values(panel)
    room = 0.04 * max(max(values) - min(values), 0.01)
    x = Scale(min(values) - room, max(values) + room, NAME_WIDTH, WIDE - RIGHT)
    parts = [
        f'<line class="grid" x1="{x(t)}" x2="{x(t)}" y1="{TOP}" y2="{high - BOTTOM}"/>'
        f'<text x="{x(t)}" y="{high - 14}" class="middle">{_tick(t, panel.percent)}</text>'
        for t in x.ticks()
    ]
    for level in panel.levels:
        at = x(level.y)
        parts.append(f'<line class="level" x1="{at}" x2="{at}" y1="{TOP}" y2="{high - BOTTOM}"/>')
    for i, (_, name) in enumerate(panel.ticks):
        y = TOP + ROW_HEIGHT * i + ROW_HEIGHT / 2
        parts.append(f'<text x="182" y="{y + 4}" class="end">{escape(shortened(name))}</text>')
        for band in panel.bands:
            left, right = x(band.low[i] or 0), x(band.high[i] or 0)
            parts.append(f'<rect {_paint("band", band.colour)} x="{left}" y="{y - 7}" '
                         f'width="{round(right - left, 1)}" height="14"/>')  # fmt: skip
        for line in panel.lines:
            value = line.y[i]
            if value is not None:
                paint = _paint("", line.colour)
                parts.append(f'<circle {paint} cx="{x(value)}" cy="{y}" r="4.5"/>')
    return _frame(figure, panel, high, "".join(parts))


def _frame(figure: Figure, panel: Panel, high: float, inside: str) -> str:
    about = f"{figure.title}. {figure.caption}" if len(figure.panels) == 1 else panel.title
    label = escape(about)
    return f'<svg viewBox="0 0 {WIDE} {high}" role="img" aria-label="{label}">{inside}</svg>'


def _paint(kind: str, colour: str) -> str:
    """A role is a class of the page's style, any other colour is written out; bands are `band`.

    >>> _paint("line", "muted"), _paint("band", "accent"), _paint("", "#c8452f")
    ('class="line muted"', 'class="band"', 'style="stroke:#c8452f;fill:#c8452f"')
    """
    if colour in ROLES:
        names = kind if kind == "band" else f"{kind} {colour}".strip()
        return f'class="{names}"'
    if kind == "line":
        return f'class="line" style="stroke:{colour}"'
    if kind == "band":
        return f'class="band" style="fill:{colour};opacity:.18"'
    return f'style="stroke:{colour};fill:{colour}"'


def _grid_lines(y: Scale, percent: bool) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y(t)}" y2="{y(t)}"/>'
        f'<text x="{LEFT - 8}" y="{y(t) + 4}" class="end">{_tick(t, percent)}</text>'
        for t in y.ticks()
    )


def _along(x: Scale, panel: Panel, along: Sequence[float]) -> str:
    named = date_ticks(x.low, x.high) if panel.dates else panel.ticks
    ticks = [(x(place), name) for place, name in named] or [
        (x(t), _tick(t, False)) for t in x.ticks(8) if t == int(t) or not isinstance(along[0], int)
    ]
    names = "".join(
        f'<text x="{at}" y="{HIGH - 14}" class="middle">{escape(text[:14])}</text>'
        for at, text in ticks
    )
    title = f'<text x="{WIDE - RIGHT}" y="{HIGH - 1}" class="end">{escape(panel.x_label)}</text>'
    return names + title


def _bars(bars: Bars, there: Sequence[float], y: Scale) -> str:
    floor = HIGH - BOTTOM
    wide = max(2.0, 0.7 * (WIDE - LEFT - RIGHT) / max(len(there), 1))
    return "".join(
        f'<rect {_paint("", bars.colour)} x="{round(at - wide / 2, 1)}" y="{y(v)}" '
        f'width="{round(wide, 1)}" height="{round(max(0.0, floor - y(v)), 1)}"/>'
        for at, v in zip(there, bars.height, strict=True)
        if v is not None
    )


def _line(line: Line, there: Sequence[float], y: Scale) -> str:
    dash = ' stroke-dasharray="6 5"' if line.shape == "dashes" else ""
    faint = ' opacity="0.35"' if line.faint else ""
    points = _points(there, line.y, y)
    return f'<polyline {_paint("line", line.colour)}{dash}{faint} points="{points}"/>'


def _mark(mark: Mark, at: float) -> str:
    return (
        f"<g><title>{escape(mark.words)}</title>"
        f'<line class="level" x1="{at}" x2="{at}" y1="{TOP}" y2="{HIGH - BOTTOM}"/>'
        f'<text x="{at}" y="{TOP}" class="middle">{escape(mark.letter)}</text></g>'
    )


def _cells(grid: Grid, x: Scale, y: Scale) -> str:
    """A heatmap in one colour: the larger the value, the darker; nan is left out."""
    rows, columns = grid.values.shape
    wide = abs(x(grid.x[1]) - x(grid.x[0])) / columns
    high = abs(y(grid.y[1]) - y(grid.y[0])) / rows
    known = [value for value in grid.values.ravel().tolist() if value == value]
    share = Scale(min(known, default=0.0), max(known, default=1.0), 0.05, 0.95)
    left, bottom = x(grid.x[0]), y(grid.y[0])
    return "".join(
        f'<rect class="accent" x="{left + wide * column:.1f}" y="{bottom - high * (row + 1):.1f}" '
        f'width="{wide:.1f}" height="{high:.1f}" opacity="{share(value)}"/>'
        for (row, column), value in zip(
            ((row, column) for row in range(rows) for column in range(columns)),
            grid.values.ravel().tolist(),
            strict=True,
        )
        if value == value
    )


def _points(there: Sequence[float], values: Numbers, y: Scale) -> str:
    return " ".join(f"{at},{y(v)}" for at, v in zip(there, values, strict=True) if v is not None)


def _tick(value: float, percent: bool) -> str:
    return f"{100 * value:.0f} %" if percent else f"{value:,.4g}"
