"""Panels drawn with plotly, for the page that is read on a screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.jobs.reproduce.panels import Band, Figure, Line, Panel

__all__ = ["as_html", "available", "library_script"]


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
    from plotly.subplots import make_subplots

    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    drawn = make_subplots(rows, columns, subplot_titles=[panel.title for panel in figure.panels])
    shown: set[str] = set()
    for place, panel in enumerate(figure.panels):
        where = {"row": place // columns + 1, "col": place % columns + 1}
        for trace in _traces(panel, shown):
            drawn.add_trace(trace, **where)
        for level in panel.levels:
            drawn.add_hline(level.y, line_dash="dot", line_color="#777777", line_width=1, **where)
        drawn.update_xaxes(title_text=panel.x_label, **where)
        drawn.update_yaxes(title_text=panel.y_label, range=panel.y_range, **where)
        if panel.ticks:
            places, names = zip(*panel.ticks, strict=True)
            drawn.update_xaxes(tickvals=places, ticktext=names, **where)
    drawn.update_layout(height=380 * rows, template="plotly_white", margin={"t": 40, "b": 40})
    return str(drawn.to_html(full_html=False, include_plotlyjs=False))


def _traces(panel: Panel, shown: set[str]) -> list[Any]:
    from plotly import graph_objects as go

    found: list[Any] = []
    if panel.grid is not None:
        grid, (rows, columns) = panel.grid, panel.grid.values.shape
        found.append(
            go.Heatmap(
                z=np.round(grid.values, 3),
                x=np.linspace(*grid.x, columns),
                y=np.linspace(*grid.y, rows),
                colorscale=grid.scale,
                showscale=False,
                hovertemplate=f"%{{x:.0f}}, %{{y:.4g}}: {grid.label} %{{z}}<extra></extra>",
            )
        )
    found.extend(_band(band, shown) for band in panel.bands)
    found.extend(
        go.Bar(
            x=bars.x,
            y=bars.height,
            width=bars.width,
            marker_color=bars.colour,
            opacity=0.55,
            name=bars.label,
            **_legend(bars.label, shown),
        )
        for bars in panel.bars
    )
    found.extend(_line(line, shown) for line in panel.lines)
    return found


def _band(band: Band, shown: set[str]) -> Any:
    from plotly import graph_objects as go

    return go.Scatter(
        x=np.concatenate([band.x, band.x[::-1]]),
        y=np.concatenate([band.low, band.high[::-1]]),
        fill="toself",
        fillcolor=_faded(band.colour),
        line_width=0,
        name=band.label,
        hoverinfo="skip",
        **_legend(band.label, shown),
    )


def _line(line: Line, shown: set[str]) -> Any:
    from plotly import graph_objects as go

    return go.Scatter(
        x=line.x,
        y=np.round(line.y, 5),
        mode="lines",
        name=line.label,
        opacity=0.3 if line.faint else 1.0,
        line={
            "color": line.colour,
            "width": 1 if line.faint else 2.5,
            "dash": "dash" if line.dashed else "solid",
        },
        **({"showlegend": False, "legendgroup": line.label} if line.faint
           else _legend(line.label, shown)),
    )  # fmt: skip


def _legend(label: str, shown: set[str]) -> dict[str, Any]:
    """One entry per name for all panels together; a click hides it everywhere."""
    first = bool(label) and label not in shown
    shown.add(label)
    return {"legendgroup": label, "showlegend": first}


def _faded(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
