"""Answers of a project in words, as text and as HTML that nothing of the graph breaks out of."""

import inspect

import pandas as pd
import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.config.load import load
from ringfence.jobs.integrity.verify import Verification
from ringfence.jobs.python_api.answer import Answer, verify_answer
from ringfence.jobs.python_api.project import Project
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.jobs.cli.test_triage import LISTS, TOML

HOSTILE = "<script>alert(1)</script>&\"'"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    path = tmp_path_factory.mktemp("answers") / "ringfence.toml"
    path.write_text(TOML + LISTS)
    settings = load(path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=3, per_run=120))
    store.close()
    return Project(settings)


def test_status_has_verdict_counts_and_lists(project):
    told = project.status()
    assert "360 nodes evaluated" in told.words[1]
    assert any(words.startswith("list investigate") for words in told.words)
    assert set(told.frame["slice"]) >= {"total", "class"}
    assert told.values.project == "p"
    assert "list investigate" in repr(told)
    assert "<table" in told._repr_html_()


def test_nothing_of_the_graph_breaks_out_of_the_html():
    frame = pd.DataFrame({HOSTILE: [HOSTILE] * 50})
    html = Answer(HOSTILE, (HOSTILE,), frame)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "10 more rows" in html


def test_problems_are_said_first_and_listed():
    changed = verify_answer(Verification(3, 1, 9, 3, ("mark 1: who changed",)))
    assert changed.title == "CHANGED"
    assert list(changed.frame["problem"]) == ["mark 1: who changed"]
    assert verify_answer(Verification(3, 1, 9, 3, ())).title.startswith("The record is as")


def test_the_report_is_written(project, tmp_path):
    done = project.report(tmp_path / "report", ["json"])
    assert done.files
    with pytest.raises(ConfigError, match="--format burnt"):
        project.report(tmp_path / "report", ["burnt"])


def test_marks_come_back_as_outcomes(project):
    nodes = project.triage()
    key = nodes[nodes["pile"] == "investigate"]["node"].iloc[0]
    assert project.mark(key, "done", who="anna", outcome="false alarm").about == "mule"
    assert list(project.outcomes()["node"]) == [key]
    with pytest.raises(ConfigError, match="the outcome 'guilty'"):
        project.mark(key, "done", who="anna", outcome="guilty")


def test_unknown_arguments_are_refused_by_every_method(project):
    """A filter that is ignored gives a longer list than was asked for."""
    methods = inspect.getmembers(Project, inspect.isfunction)
    for name, method in methods:
        if name.startswith("_"):
            continue
        taken = inspect.signature(method).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
            with pytest.raises(ConfigError, match="no filter 'no_such'"):
                getattr(project, name)("mule", no_such=1)
        else:
            with pytest.raises(TypeError, match="no_such"):
                getattr(project, name)(no_such=1)
