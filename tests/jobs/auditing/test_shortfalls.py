"""A class that is covered far below the promise is told on Today, in alarms and in metrics."""

import pytest

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.auditing.shortfalls import describe_shortfall, find_shortfalls
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.dashboard.whole_view import whole_view


def queries_of(folder, **plan):
    graph = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
    values = {"project": "p", "graph": graph, "audit": {"groups": ["region"]}}
    settings = load_values(values, folder / "ringfence.toml", {})
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=3, per_run=200, **plan))
    return ProjectQueries(store, "p")


@pytest.fixture(scope="module")
def poor(tmp_path_factory):
    """Mules are missed four times in ten; all nodes together are covered as promised."""
    return queries_of(tmp_path_factory.mktemp("poor"), covered=0.98, covered_by_class={"mule": 0.6})


@pytest.fixture(scope="module")
def fair(tmp_path_factory):
    return queries_of(tmp_path_factory.mktemp("fair"), covered=0.91)


def page_of(queries):
    from ringfence.jobs.dashboard.html import render
    from ringfence.jobs.dashboard.pages import today

    frame = {"here": "/", "project": "p", "csrf": ""}
    return render("today.html", **today.build(whole_view(queries)), **frame)


def test_the_class_is_named_though_the_verdict_over_all_nodes_is_kept(poor):
    assert poor.total().verdict == "kept"
    short = find_shortfalls([*poor.named("class"), *poor.named("group")])
    assert [row.name for row in short] == ["mule"]
    words = describe_shortfall(short[0])
    assert "classes on average" in words
    assert "none to it alone" in words


def test_today_alarms_and_metrics_agree(poor, fair):
    from ringfence.jobs.dashboard.metrics import exposition

    page = page_of(poor)
    assert '<section class="verdict bad" id="next">' in page
    assert "far below" in page
    alarm = {alarm.rule: alarm for alarm in poor.alarms()}["shortfall"]
    assert alarm.state == "firing"
    assert "class mule" in alarm.words
    metrics = exposition(poor).decode()
    of_mules = '{class="mule",group="",project="p"}'
    assert f"ringfence_slice_far_below_promise{of_mules} 1.0" in metrics
    assert 'ringfence_slice_coverage_ratio{class="",group="region=north",project="p"}' in metrics

    page = page_of(fair)
    assert '<li class="good">' in page
    assert 'class="tag bad"' not in page
    assert {alarm.rule: alarm.state for alarm in fair.alarms()}["shortfall"] == "ok"
    assert "slice_far_below_promise{" in exposition(fair).decode()
    assert f"ringfence_slice_far_below_promise{of_mules} 0.0" in exposition(fair).decode()
