"""What `ringfence.open` gives: tidy frames with timestamps, figures, a useful repr."""

import json

import pandas as pd
import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.config.load import load_values
from ringfence.jobs.python_api.project import Project
from ringfence.jobs.samples.audit_store import CLASSES, Plan, fill_store

GRAPH = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}


def settings_at(folder):
    values = {"project": "p", "graph": GRAPH, "audit": {"groups": ["region"]}}
    return load_values(values, folder / "ringfence.toml", {})


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    settings = settings_at(tmp_path_factory.mktemp("api"))
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=3, per_run=60))
    store.close()
    return Project(settings)


def test_sets_have_a_p_value_of_every_class_and_a_time(project):
    every = project.sets()
    assert len(every) == 180
    assert set(every["run"]) == {1, 2, 3}
    one = project.sets(2)
    assert len(one) == 60
    assert one["decided"].dt.tz is not None
    inside = one.apply(lambda row: row["p mule"] > 0.1, axis=1)
    assert (inside == one["classes"].map(lambda names: "mule" in names)).all()
    assert {f"p {name}" for name in CLASSES} <= set(one.columns)


def test_runs_and_coverage_have_timestamps(project):
    runs, coverage = project.runs(), project.coverage()
    assert list(runs["seq"]) == [1, 2, 3]
    for frame, name in ((runs, "decided"), (coverage, "audited")):
        assert isinstance(frame[name].dtype, pd.DatetimeTZDtype)
        assert f"{name}_ns" not in frame.columns
    assert {"run", "total", "class", "group"} <= set(coverage["slice"])


def test_the_worklist_is_that_of_the_sets(project):
    sets = project.sets()
    holds = sets[sets["classes"].map(lambda names: "mule" in names) & sets["class"].isna()]
    listed = project.worklist("mule")
    assert list(listed["p"]) == sorted(holds["p mule"], reverse=True)
    few = project.worklist("mule", known="any", max_size=1, min_p=0.5)
    assert (few["size"] == 1).all()
    assert (few["p"] > 0.5).all()
    for wrong in (
        {"class_": "nobody"},
        {"class_": "mule", "run": "x"},
        {"class_": "mule", "minp": 0.9},
    ):
        with pytest.raises(ConfigError):
            project.worklist(**wrong)


def test_explain_gives_the_p_values_of_one_node(project):
    frame = project.explain("account 2-7")
    assert sorted(frame["class"]) == sorted(CLASSES)
    assert frame["p"].is_monotonic_decreasing
    assert frame.attrs["words"]
    with pytest.raises(ConfigError):
        project.explain("nobody")


def test_figures_are_plotly_s_and_unknown_ones_are_named(project):
    from ringfence.jobs.python_api.project import FIGURES

    for name in FIGURES:
        assert json.loads(project.figure(name).to_json())["data"], name
    with pytest.raises(ConfigError, match="coverage"):
        project.figure("nothing")


def test_the_project_says_its_verdict_and_a_missing_store_is_said(project, tmp_path):
    assert "run 3 was the last; 180 nodes evaluated; kept" in repr(project)
    assert "there is no audit store" in repr(Project(settings_at(tmp_path)))
