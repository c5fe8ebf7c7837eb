"""Figures: the same panels as PNG and as HTML, and what they show, on a generated dataset."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.reproduce.beyond import growing_figure, monitor_figure, small_n_table
from ringfence.jobs.reproduce.cache import Cache
from ringfence.jobs.reproduce.columns import arrival_curve, fixed_curve, run_of
from ringfence.jobs.reproduce.datasets import write_npz
from ringfence.jobs.reproduce.figures.comparisons import subgraphs_figure
from ringfence.jobs.reproduce.figures.draw import draw_all
from ringfence.jobs.reproduce.networks import forward, network_curve
from ringfence.jobs.reproduce.page import write_results
from ringfence.jobs.reproduce.sequence_runs import Plan, run_datasets
from ringfence.jobs.reproduce.table import rows_of
from ringfence.jobs.views.charts.model import Band, Bars, Figure, Grid, Level, Line, Panel
from ringfence.jobs.views.renderers import plotly
from ringfence.jobs.views.renderers.matplotlib import write_png
from ringfence.models.sample.accounts import sample_graph


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    graph = sample_graph(700, seed=4)
    write_npz(folder / "tiny.npz", graph.features > 0, graph.y, graph.edges)
    return Plan(("tiny",), folder, 10, 2, 7, Cache(folder / "cache"))


@pytest.fixture(scope="module")
def tiny(plan):
    data = plan.load("tiny")
    return data, plan.model(data, 0)


@pytest.mark.long
def test_every_figure_is_drawn_and_stands_in_the_page(plan, tmp_path):
    results, skipped = run_datasets(plan, lambda *_: None)
    drawn = draw_all(plan, results, tmp_path, lambda *_: None)
    written = write_results(tmp_path, rows_of(results), skipped, drawn, "ringfence reproduce")
    assert len(drawn.figures) == 13
    assert len(written) == 4
    readme, page = (tmp_path / "README.md").read_text(), (tmp_path / "index.html").read_text()
    for figure in drawn.figures:
        picture = tmp_path / "figures" / f"{figure.name}.png"
        assert 2_000 < picture.stat().st_size < 200_000
        assert f"figures/{figure.name}.png" in readme
        assert figure.title.split(",")[0] in page
    assert drawn.tables[0].title in readme


@pytest.mark.slow
def test_arrivals_end_where_the_table_does_and_columns_where_the_last_step_does(plan, tiny):
    data, model = tiny
    record = run_datasets(plan, lambda *_: None)[0][0].node[0]
    run = run_of(plan, data, model, "node", 0)
    arrival = arrival_curve(data, model, run, ("node", "naive"))
    fixed = fixed_curve(data, model, run, ("node", "naive"), count=10)
    for rule in ("node", "naive"):
        assert arrival.coverage[rule][-1] == record["arrival"][rule]["covered"] / record["m"]
        assert fixed.coverage[rule][-1] == record["last"][rule]["covered"] / record["m"]
        assert fixed.size[rule][-1] == pytest.approx(record["last"][rule]["size"])
        assert fixed.hit[rule][-1] == pytest.approx(record["last"][rule]["hit"])


@pytest.mark.slow
def test_full_forwards_at_some_times_agree_with_the_replay(plan, tiny):
    data, model = tiny
    slow = network_curve(data, model, forward(data, model), "edge", 0, plan.seed, steps=4)
    run = run_of(plan, data, model, "edge", 0)
    fast = fixed_curve(data, model, run, ("edge", "node", "naive"), count=4)
    for rule in ("edge", "node", "naive"):
        assert slow.coverage[rule][-1] == pytest.approx(fast.coverage[rule][-1], abs=2e-3)


def test_the_printed_rank_and_clamping_break_where_n_is_small(plan):
    cells = {row[0]: row[1:] for row in small_n_table(plan, "tiny").rows}
    assert cells["5"][0].startswith("1.000 / 1.000")
    assert cells["5"][1].startswith("0.833")
    assert cells["5"][2].startswith("0.833")
    assert cells["10"] == (cells["10"][0], cells["10"][1], cells["10"][0])
    for cell in (text for row in cells.values() for text in row):
        exact, measured = map(float, cell.split(" / "))
        assert measured == pytest.approx(exact, abs=0.025)


@pytest.mark.long
def test_union_covers_more_and_intersection_less_than_the_vote(plan):
    panel = subgraphs_figure(plan, "tiny").panels[0]
    names = [name for _, name in panel.ticks]
    bars = dict(zip(names, panel.bars[0].height, strict=True))
    assert bars["intersection"] < bars["vote"] < bars["union"]
    assert bars["vote"] == pytest.approx(bars["whole"], abs=0.03)


@pytest.mark.slow
def test_class_by_class_arrival_raises_the_alarm_and_shuffled_arrival_does_not(plan):
    figure = monitor_figure(plan, "tiny")
    lines = {line.label: line for line in figure.panels[0].lines if not line.faint}
    level = figure.panels[0].levels[0].y
    assert lines["class by class"].y.max() > level
    assert lines["shuffled"].y.max() < level


@pytest.mark.long
def test_growing_calibration_scatters_less(plan):
    panel = growing_figure(plan, "tiny").panels[0]
    ends = {
        label: np.std([line.y[-1] for line in panel.lines if line.faint and line.label == label])
        for label in ("fixed", "growing")
    }
    assert ends["growing"] < ends["fixed"]


def _everything() -> Figure:
    x = np.arange(5.0)
    return Figure(
        "all",
        "All kinds",
        "caption",
        (
            Panel(
                "lines & <bands>", "x", "y",
                lines=(Line(x, x, "one", "#1f6fb4"), Line(x, x + 1, "one", "#1f6fb4", faint=True)),
                bands=(Band(x, x - 1, x + 1, "band", "#1f6fb4"),),
                levels=(Level(2.0, "level"),), y_range=(0.0, 5.0),
            ),
            Panel("grid", "x", "y", grid=Grid(np.eye(4), (0.0, 4.0), (0.0, 4.0), "value")),
            Panel("bars", "x", "y", bars=(Bars(x, x, 0.5, "b", "#c8452f"),), ticks=((0.0, "a"),)),
        ),
    )  # fmt: skip


def test_one_figure_becomes_a_picture_and_a_div(tmp_path):
    write_png(_everything(), tmp_path / "all.png")
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    assert plotly.available()
    div = plotly.as_html(_everything())
    for label in ("one", "band", "b"):
        assert f'"name":"{label}"' in div
    assert '"type":"heatmap"' in div
    assert "<script src=" not in div


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch, tmp_path):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"ringfence\[reproduce\]"):
        write_png(_everything(), tmp_path / "x.png")
