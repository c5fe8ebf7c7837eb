"""Figures drawn with plotly, for the page that is read on a screen."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ringfence.jobs.views.charts.model import (
    ROLES,
    Band,
    Figure,
    Line,
    Numbers,
    Panel,
    shortened,
)

__all__ = ["as_html", "as_plotly", "available", "library_script"]


def available() -> bool:
    """Whether plotly is installed."""
    from importlib.util import find_spec

    return find_spec("plotly") is not None


def library_script() -> str:
    """plotly.js itself, so that the page needs no network."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def as_html(figure: Figure) -> str:
    """The figure as a div; ``library_script`` must stand before it in the page."""
    return str(as_plotly(figure).to_html(full_html=False, include_plotlyjs=False))


def as_plotly(figure: Figure) -> Any:
    """The figure as plotly's own, which a notebook shows."""
    from plotly.subplots import make_subplots

    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    drawn = make_subplots(rows, columns, subplot_titles=[panel.title for panel in figure.panels])
    in_legend: set[str] = set()
    for place, panel in enumerate(figure.panels):
        where = {"row": place // columns + 1, "col": place % columns + 1}
        for trace in _traces(panel, in_legend):
            drawn.add_trace(trace, **where)
        _set_axes(drawn, panel, where)
    drawn.update_layout(height=380 * rows, template="plotly_white", margin={"t": 40, "b": 40})
    return drawn


def _set_axes(drawn: Any, panel: Panel, where: dict[str, int]) -> None:
    across, value_axis, place_axis = drawn.add_hline, drawn.update_yaxes, drawn.update_xaxes
    if panel.sideways:
        across, value_axis, place_axis = drawn.add_vline, place_axis, value_axis
        place_axis(autorange="reversed", **where)  # the first name on top
    for level in panel.levels:
        across(level.y, line_dash="dot", line_color="#777777", line_width=1, **where)
    for mark in panel.marks:
        drawn.add_vline(mark.x, line_dash="dot", line_color="#777777", line_width=1,
                        annotation_text=escape(mark.letter),
                        annotation_hovertext=escape(shortened(mark.words)), **where)  # fmt: skip
    place_axis(title_text=panel.x_label, **where)
    value_axis(title_text=panel.y_label, range=panel.y_range, **where)
    if panel.percent:
        value_axis(tickformat=".0%", **where)
    if panel.dates:
        place_axis(type="date", **where)
    if panel.ticks:
        places, names = zip(*panel.ticks, strict=True)
        texts = [escape(shortened(name)) for name in names]  # plotly reads some HTML
        place_axis(tickvals=places, ticktext=texts, **where)


def _traces(panel: Panel, in_legend: set[str]) -> list[Any]:
    from plotly import graph_objects as go

    traces: list[Any] = []
    if panel.grid is not None:
        grid, (rows, columns) = panel.grid, panel.grid.values.shape
        traces.append(
            go.Heatmap(
                z=np.round(grid.values, 3),
                x=np.linspace(*grid.x, columns),
                y=np.linspace(*grid.y, rows),
                colorscale=grid.scale,
                showscale=False,
                hovertemplate=f"%{{x:.0f}}, %{{y:.4g}}: {grid.label} %{{z}}<extra></extra>",
            )
        )
    traces.extend(_band(band, panel.sideways, in_legend) for band in panel.bands)
    traces.extend(
        go.Bar(
            x=bars.x,
            y=bars.height,
            width=bars.width,
            marker_color=ROLES.get(bars.colour, bars.colour),
            opacity=0.55,
            name=bars.label,
            **_legend(bars.label, in_legend),
        )
        for bars in panel.bars
    )
    traces.extend(_line(line, panel.sideways, in_legend) for line in panel.lines)
    return traces


def _band(band: Band, sideways: bool, in_legend: set[str]) -> Any:
    from plotly import graph_objects as go

    places = np.concatenate([band.x, band.x[::-1]])
    values = np.concatenate([_floats(band.low), _floats(band.high)[::-1]])
    return go.Scatter(
        **_turned(places, values, sideways),
        fill="toself",
        fillcolor=_faded(band.colour),
        line_width=0,
        name=band.label,
        hoverinfo="skip",
        **_legend(band.label, in_legend),
    )


def _line(line: Line, sideways: bool, in_legend: set[str]) -> Any:
    from plotly import graph_objects as go

    return go.Scatter(
        **_turned(line.x, np.round(_floats(line.y), 5), sideways),
        mode="markers" if line.shape == "points" else "lines+markers" if line.names else "lines",
        text=list(line.names) or None,
        name=line.label,
        opacity=0.3 if line.faint else 1.0,
        line={
            "color": ROLES.get(line.colour, line.colour),
            "width": 1 if line.faint else 2.5,
            "dash": "dash" if line.shape == "dashes" else "solid",
            "shape": "hvh" if line.shape == "step" else None,
        },
        **({"showlegend": False, "legendgroup": line.label} if line.faint
           else _legend(line.label, in_legend)),
    )  # fmt: skip


def _legend(label: str, in_legend: set[str]) -> dict[str, Any]:
    """One entry per name for all panels together; a click hides it everywhere."""
    first = bool(label) and label not in in_legend
    in_legend.add(label)
    return {"legendgroup": label, "showlegend": first}


def _turned(places: Any, values: Any, sideways: bool) -> dict[str, Any]:
    return {"x": values, "y": places} if sideways else {"x": places, "y": values}


def _floats(values: Numbers) -> Any:
    return np.array(values, dtype=float)  # None becomes nan, which leaves a gap


def _faded(colour: str) -> str:
    colour = ROLES.get(colour, colour)
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
