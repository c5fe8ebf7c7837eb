"""Figures as small SVG pictures: no script, no network, sharp on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from ringfence.jobs.figures import Figure, Line

WIDE, HIGH = 640, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 34
ROW = 24


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
    """Return the figure as an SVG element."""
    return _sideways(figure) if figure.sideways else _upright(figure)


def _numbers(figure: Figure) -> list[float]:
    found = [y for line in figure.lines for y in line.y if y is not None]
    if figure.band:
        found += [y for y in (*figure.band.low, *figure.band.high) if y is not None]
    if figure.level:
        found.append(figure.level[1])
    if any(line.shape == "bars" for line in figure.lines):
        found.append(0.0)
    return found or [0.0, 1.0]


def _upright(figure: Figure) -> str:
    numbers = _numbers(figure)
    low, high = figure.bounds or (min(numbers), max(numbers))
    y = Scale(low, high if high > low else low + 1, HIGH - BOTTOM, TOP)
    along = [x if isinstance(x, int | float) else i for i, x in enumerate(figure.x)]
    edge = 0.6 if any(line.shape == "bars" for line in figure.lines) else 0.0
    x = Scale(min(along) - edge, max(along) + edge + (len(along) == 1), LEFT, WIDE - RIGHT)
    parts = [_grid(y, figure.percent), _along(x, figure, along)]
    if figure.band:
        there = [x(one) for one in along]
        top = _points(there, figure.band.high, y)
        low_edge = _points(there[::-1], figure.band.low[::-1], y)
        parts.append(f'<polygon class="band" points="{top} {low_edge}"/>')
    if figure.level:
        at = y(figure.level[1])
        parts.append(f'<line class="level" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{at}" y2="{at}"/>')
    parts += [_series(line, [x(one) for one in along], y, HIGH - BOTTOM) for line in figure.lines]
    return _frame(figure, HIGH, "".join(parts))


def _sideways(figure: Figure) -> str:
    high = TOP + BOTTOM + ROW * len(figure.x)
    numbers = _numbers(figure)
    room = 0.04 * max(max(numbers) - min(numbers), 0.01)
    x = Scale(min(numbers) - room, max(numbers) + room, 190, WIDE - RIGHT)
    parts = [
        f'<line class="grid" x1="{x(t)}" x2="{x(t)}" y1="{TOP}" y2="{high - BOTTOM}"/>'
        f'<text x="{x(t)}" y="{high - 14}" class="middle">{_tick(t, figure.percent)}</text>'
        for t in x.ticks()
    ]
    if figure.level:
        at = x(figure.level[1])
        parts.append(f'<line class="level" x1="{at}" x2="{at}" y1="{TOP}" y2="{high - BOTTOM}"/>')
    for i, name in enumerate(figure.x):
        y = TOP + ROW * i + ROW / 2
        parts.append(f'<text x="182" y="{y + 4}" class="end">{escape(str(name)[:28])}</text>')
        if figure.band:
            left, right = x(figure.band.low[i] or 0), x(figure.band.high[i] or 0)
            parts.append(f'<rect class="band" x="{left}" y="{y - 7}" '
                         f'width="{round(right - left, 1)}" height="14"/>')  # fmt: skip
        value = figure.lines[0].y[i]
        if value is not None:
            parts.append(f'<circle class="accent" cx="{x(value)}" cy="{y}" r="4.5"/>')
    return _frame(figure, high, "".join(parts))


def _frame(figure: Figure, high: float, inside: str) -> str:
    label = escape(f"{figure.title}. {figure.words}")
    return f'<svg viewBox="0 0 {WIDE} {high}" role="img" aria-label="{label}">{inside}</svg>'


def _grid(y: Scale, percent: bool) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y(t)}" y2="{y(t)}"/>'
        f'<text x="{LEFT - 8}" y="{y(t) + 4}" class="end">{_tick(t, percent)}</text>'
        for t in y.ticks()
    )


def _along(x: Scale, figure: Figure, along: Sequence[float]) -> str:
    names = all(isinstance(one, str) for one in figure.x)
    ticks = [(x(i), str(one)) for i, one in enumerate(figure.x)] if names else [
        (x(t), _tick(t, False)) for t in x.ticks(8) if t == int(t) or not isinstance(along[0], int)
    ]  # fmt: skip
    words = "".join(
        f'<text x="{at}" y="{HIGH - 14}" class="middle">{escape(text[:14])}</text>'
        for at, text in ticks
    )
    title = f'<text x="{WIDE - RIGHT}" y="{HIGH - 1}" class="end">{escape(figure.x_title)}</text>'
    return words + title


def _series(line: Line, there: Sequence[float], y: Scale, floor: float) -> str:
    if line.shape == "bars":
        wide = max(2.0, 0.7 * (WIDE - LEFT - RIGHT) / max(len(there), 1))
        return "".join(
            f'<rect class="{line.role}" x="{round(at - wide / 2, 1)}" y="{y(v)}" '
            f'width="{round(wide, 1)}" height="{round(max(0.0, floor - y(v)), 1)}"/>'
            for at, v in zip(there, line.y, strict=True)
            if v is not None
        )
    dash = ' stroke-dasharray="6 5"' if line.shape == "dashes" else ""
    points = _points(there, line.y, y)
    return f'<polyline class="line {line.role}"{dash} points="{points}"/>'


def _points(there: Sequence[float], values: Sequence[Any], y: Scale) -> str:
    return " ".join(f"{at},{y(v)}" for at, v in zip(there, values, strict=True) if v is not None)


def _tick(value: float, percent: bool) -> str:
    return f"{100 * value:.0f} %" if percent else f"{value:,.4g}"
