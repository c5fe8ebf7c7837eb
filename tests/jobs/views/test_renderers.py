"""One chart model, three renderers: whatever a panel holds, SVG, plotly and matplotlib draw it."""

from dataclasses import fields

import numpy as np
import pytest

from ringfence.jobs.views import charts
from ringfence.jobs.views.charts.model import (
    ROLES,
    Band,
    Bars,
    Figure,
    Grid,
    Level,
    Line,
    Panel,
    named_places,
)
from ringfence.jobs.views.renderers import plotly, svg
from ringfence.jobs.views.renderers.matplotlib import write_png

X = [1, 2, 3]
PANELS = {
    "lines": Panel(
        "lines",
        "run",
        "share",
        tuple(
            Line(X, [0.2, None, 0.4], f"{shape} <b>", "accent", shape)
            for shape in ("line", "points", "dashes", "step")
        ),
        bands=(Band(X, [0.1, 0.1, 0.2], [0.5, 0.6, 0.7], "usual band"),),
        levels=(Level(0.9, "promised 90 %"),),
        percent=True,
    ),
    "fixed colours": Panel(
        "arrays",
        "step",
        "y",
        (Line(np.arange(3.0), np.arange(3.0), "one", "#1f6fb4", faint=True),),
        bands=(Band(np.arange(3.0), np.zeros(3), np.ones(3), "band", "#c8452f"),),
    ),
    "bars": Panel("bars", "", "seconds", bars=(Bars([0, 1], [0.4, 1.2], None, "s", "second"),),
                  ticks=named_places(["read", "decide"])),
    "sideways": Panel(
        "names",
        "",
        "covered",
        (Line([0, 1], [0.8, 0.9], "coverage", "accent", "points"),),
        bands=(Band([0, 1], [0.7, 0.8], [0.9, 1.0], "usual band"),),
        levels=(Level(0.9, "promised"),),
        ticks=named_places(["<script>", "b"]),
        percent=True,
        sideways=True,
    ),
    "grid": Panel("grid", "x", "y", grid=Grid(np.eye(3), (0.0, 3.0), (0.0, 3.0), "value")),
}  # fmt: skip


@pytest.mark.parametrize("name", PANELS)
def test_every_kind_of_panel_is_drawn_by_all_three(name, tmp_path):
    figure = Figure("x", "All & kinds", "caption", (PANELS[name],))
    picture = svg.draw(figure)
    assert picture.startswith("<svg")
    assert "<script>" not in picture
    assert "nan" not in picture
    write_png(figure, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    div = plotly.as_html(figure)
    for drawn in PANELS[name].series:
        assert f'"name":"{drawn.label}"'.replace("<", "\\u003c").replace(">", "\\u003e") in div


def test_several_panels_are_several_pictures():
    assert svg.draw(Figure("x", "t", "c", tuple(PANELS.values()))).count("<svg") == len(PANELS)


def test_a_panel_is_empty_where_no_series_has_a_point():
    assert Figure("x", "t", "c", (Panel("", "", "", (Line([], [], "l"),)),)).empty
    assert not any(panel.empty for panel in PANELS.values())
    for make in (charts.coverage_per_run, charts.cumulative, charts.set_sizes, charts.thresholds,
                 charts.arrivals, charts.degrees, charts.distances, charts.score_densities,
                 charts.calibration_size):  # fmt: skip
        assert make([]).empty, make


def test_every_role_of_the_theme_has_a_colour_where_there_is_no_theme():
    assert {Line([], [], "").colour, Band([], [], [], "").colour} <= set(ROLES)
    assert all(colour.startswith("#") for colour in ROLES.values())
    assert not {"log", "extra"} & {field.name for field in fields(Figure)}
