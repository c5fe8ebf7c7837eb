"""Every query of the Grafana example is asked of our own SQL or of our own `/metrics`.

The file was not loaded into Grafana here; what is tested is that its queries find something.
"""

import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text

from ringfence.connector.store import schedule
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.schedule import Ended, Planned
from ringfence.jobs.config.load import load_values
from ringfence.jobs.dashboard.metrics import METRICS, exposition
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.stores import open_at

DASHBOARD = json.loads(
    (Path(__file__).resolve().parents[2] / "examples/grafana-dashboard.json").read_text("utf-8")
)
TARGETS = [(panel["title"], target) for panel in DASHBOARD["panels"] for target in panel["targets"]]
SELECTOR = re.compile(r'(\w+)\{((?:\w+="[^"]*",?)*)\}')


@pytest.fixture
def queries(sql_url, tmp_path):
    """A project with runs, classes, groups, alarms, a promise per class and a scheduled job."""
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
    }
    settings = load_values(values, tmp_path / "ringfence.toml", {})
    store = open_at(sql_url)
    fill_store(store, settings, Plan(runs=3, per_run=80, promise="class", covered=0.5))
    schedule.plan(store, "p", [Planned("score", "every hour", "UTC", lambda at: at + 1, True)])
    claim = schedule.claim(store, "p", "score", "here", 60)
    assert schedule.finish(store, claim, Ended("done", "run 3"), lambda at: at + 3_600 * 10**9)
    yield ProjectQueries(store, "p")
    store.close()


def find_series(page, selector):
    """What Prometheus would return for a plain selector: labels and value of each series."""
    name, given = SELECTOR.fullmatch(selector).groups()
    wanted = dict(re.findall(r'(\w+)="([^"]*)"', given))
    return [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name
        and all(sample.labels.get(label, "") == value for label, value in wanted.items())
    ]


def ask_sql(queries, query):
    query = query.replace("$project", queries.project)
    query = query.replace("$__timeFilter(decided_at)", "1 = 1")
    with queries.store.reading() as connection:
        return connection.execute(text(query)).all()


def test_every_query_finds_something(queries):
    page = exposition(queries).decode()
    empty = []
    for title, target in TARGETS:
        if "rawSql" in target:
            found = ask_sql(queries, target["rawSql"])
        else:
            found = find_series(page, target["expr"].replace("$project", queries.project))
            names = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            assert all(name in labels for labels, _ in found for name in names), title
        empty += [] if found else [title]
    assert empty == []
    assert {"rawSql", "expr"} <= {name for _, target in TARGETS for name in target}
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    asked = {panel["datasource"]["uid"].strip("${}") for panel in DASHBOARD["panels"]}
    assert asked <= variables


def test_a_metric_that_we_do_not_have_is_noticed(queries):
    """The negative control."""
    page = exposition(queries).decode()
    assert find_series(page, 'ringfence_no_such{project="p"}') == []
    assert find_series(page, 'ringfence_coverage_ratio{project="other"}') == []


def test_classes_and_groups_are_shown_with_every_name(queries):
    page = exposition(queries).decode()
    for label, other in (("class", "group"), ("group", "class")):
        found = find_series(page, f'ringfence_slice_coverage_ratio{{project="p",{other}=""}}')
        named = {row.name for row in queries.named(label)}
        assert {labels[label] for labels, _ in found} == named != set()


def test_every_step_and_every_job_has_its_metrics(queries):
    page = exposition(queries).decode()
    last = queries.runs(last=1)[-1]
    steps = find_series(page, 'ringfence_last_run_step_seconds{project="p"}')
    assert {labels["step"]: value for labels, value in steps} == dict(last.timings) != {}
    (done,) = find_series(page, 'ringfence_job_outcome{job="score",outcome="done"}')
    assert done[1] == 1
    ((_, failures),) = find_series(page, 'ringfence_job_failures_in_a_row{job="score"}')
    assert failures == 0
    ((_, due),) = find_series(page, 'ringfence_job_next_timestamp_seconds{job="score"}')
    ((_, began),) = find_series(page, 'ringfence_job_last_start_timestamp_seconds{job="score"}')
    assert due > began


def test_every_metric_on_the_page_is_in_the_list(queries):
    shown = {family.name for family in text_string_to_metric_families(exposition(queries).decode())}
    assert shown <= {f"ringfence_{name}" for name in METRICS}
    assert len(shown) > 35
