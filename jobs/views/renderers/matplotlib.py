"""Figures drawn with matplotlib, as PNG."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.connector.errors import ConfigError
from ringfence.jobs.views.charts.model import ROLES, Figure, Line, Numbers, Panel, shortened

__all__ = ["write_png"]

DPI = 90
MAX_LEGEND_ROWS = 4  # names in a legend before it gets a second column
AUTOMATIC_BAR_WIDTH = 0.8
LINE_STYLES = {"line": "-", "dashes": "--", "step": "-", "points": ""}


def write_png(figure: Figure, path: Path) -> None:
    """Draw ``figure`` to ``path``, in a 192-colour palette so that the file is small."""
    pyplot = _pyplot()
    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    drawn, axes = pyplot.subplots(
        rows, columns, figsize=(4.6 * columns, 3.5 * rows), squeeze=False, layout="constrained"
    )
    for place, axis in enumerate(axes.flat):
        if place < len(figure.panels):
            _draw(axis, figure.panels[place], drawn)
        else:
            axis.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=DPI, metadata={"Software": None})
    pyplot.close(drawn)
    _shrink(path)


def _pyplot() -> Any:
    try:
        import matplotlib as library
    except ModuleNotFoundError as error:
        raise ConfigError(
            found="matplotlib is not installed, and figures need it",
            needed="the extra `reproduce`",
            next_step='pip install "ringfence[reproduce]", or add --no-figures',
        ) from error
    library.use("agg")
    from matplotlib import pyplot

    return pyplot


def _draw(axis: Any, panel: Panel, drawn: Any) -> None:
    if panel.grid is not None:
        image = axis.imshow(
            panel.grid.values,
            extent=(*panel.grid.x, *panel.grid.y),
            origin="lower",
            aspect="auto",
            cmap=panel.grid.scale,
            interpolation="nearest",
        )
        drawn.colorbar(image, ax=axis, label=panel.grid.label)
    if panel.dates:
        axis.xaxis.set_major_formatter(_date_text)
    for band in panel.bands:
        fill = axis.fill_betweenx if panel.sideways else axis.fill_between
        colour = ROLES.get(band.colour, band.colour)
        fill(
            band.x, _floats(band.low), _floats(band.high), color=colour, alpha=0.18, lw=0,
            label=band.label,
        )  # fmt: skip
    for bars in panel.bars:
        axis.bar(
            bars.x,
            _floats(bars.height),
            AUTOMATIC_BAR_WIDTH if bars.width is None else bars.width,
            color=ROLES.get(bars.colour, bars.colour),
            alpha=0.55,
            label=bars.label or None,
        )
    for line in panel.lines:
        _draw_line(axis, line, panel.sideways)
    for level in panel.levels:
        across = axis.axvline if panel.sideways else axis.axhline
        across(level.y, color="#777777", lw=1.0, ls=":", label=level.label or None)
    for mark in panel.marks:
        axis.axvline(mark.x, color="#777777", lw=1.0, ls=":")
        axis.annotate(mark.letter, (mark.x, 1.0), xycoords=("data", "axes fraction"), fontsize=7)
    _label(axis, panel)


def _draw_line(axis: Any, line: Line, sideways: bool) -> None:
    x, y = line.x, _floats(line.y)
    axis.plot(
        *((y, x) if sideways else (x, y)),
        color=ROLES.get(line.colour, line.colour),
        lw=0.7 if line.faint else 2.0,
        alpha=0.35 if line.faint else 1.0,
        ls=LINE_STYLES[line.shape],
        marker="o" if line.shape == "points" else None,
        drawstyle="steps-mid" if line.shape == "step" else "default",
        label=None if line.faint else line.label or None,
    )


def _floats(values: Numbers) -> Any:
    return np.array(values, dtype=float)  # None becomes nan, which leaves a gap


def _label(axis: Any, panel: Panel) -> None:
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.y_label if panel.sideways else panel.x_label, fontsize=9)
    axis.set_ylabel(panel.x_label if panel.sideways else panel.y_label, fontsize=9)
    axis.tick_params(labelsize=8)
    if panel.y_range is not None:
        (axis.set_xlim if panel.sideways else axis.set_ylim)(*panel.y_range)
    if panel.ticks:
        name_places = axis.set_yticks if panel.sideways else axis.set_xticks
        names = [shortened(name).replace("$", r"\$") for _, name in panel.ticks]  # no formulae
        name_places([place for place, _ in panel.ticks], names)
    if panel.sideways:
        axis.invert_yaxis()  # the first name on top
    if panel.percent:
        (axis.xaxis if panel.sideways else axis.yaxis).set_major_formatter("{x:.0%}")
    handles, labels = axis.get_legend_handles_labels()
    if labels:
        columns = 2 if len(labels) > MAX_LEGEND_ROWS else 1
        axis.legend(handles, labels, fontsize=7, framealpha=0.7, ncols=columns)


def _date_text(place: float, _position: int) -> str:
    """A place on a time axis, which is in milliseconds, as text."""
    return datetime.fromtimestamp(place / 1_000, UTC).strftime("%m-%d %H:%M")


def _shrink(path: Path) -> None:
    from PIL import Image

    with Image.open(path) as image:
        small = image.convert("RGB").quantize(colors=192, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
