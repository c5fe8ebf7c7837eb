"""Today's three lines, and what to do where a promise is broken."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.news import read_news
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.worklist.marks import record_mark
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.samples.audit_store import DAY_NS, Plan, fill_store
from ringfence.jobs.views import next_step
from ringfence.jobs.views.next_step import find_next_step
from ringfence.jobs.views.today import (
    VISIT_GAP_NS,
    Visits,
    news_line,
    promise_line,
    waiting_line,
)
from tests.dashboard.conftest import settings_at
from tests.jobs.views.test_change_marks import insert_activation


@pytest.fixture
def project(tmp_path):
    """Four runs of 60, two days apart, the last one now; coverage as promised."""
    settings = settings_at(tmp_path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=4, per_run=60, days_apart=2.0, known=1.0, covered=0.97))
    yield ProjectQueries(store, settings.project), settings
    store.close()


@pytest.fixture
def broken(tmp_path):
    """The same with sets that miss a third of their classes."""
    (tmp_path / "broken").mkdir()
    settings = settings_at(tmp_path / "broken")
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=4, per_run=200, known=1.0, covered=0.6))
    yield ProjectQueries(store, settings.project)
    store.close()


def test_the_promise_is_one_figure_and_one_target(project, broken):
    queries, _ = project
    row, line = queries.verdict(), promise_line(queries)
    assert line.word == row.verdict
    assert line.headline == f"{100 * row.coverage:.1f} % covered, 90 % promised"
    assert line.address == "/coverage"
    assert promise_line(broken).word == "broken"


def test_news_since_a_moment_are_those_of_the_rows_after_it(project):
    queries, settings = project
    runs = queries.runs()
    since = runs[1].decided_ns
    news = read_news(queries, since)
    assert (news.runs, news.nodes) == (2, runs[2].n_evaluated + runs[3].n_evaluated)
    assert (news.promotions, news.rollbacks, news.marked) == (0, 0, 0)  # the first model is none
    insert_activation(queries.store, since + 1, "rolled back")
    key = queries.rows(text_of_keys())[0]["node_key"]
    for action in ("claim", "done", "reopen", "done"):
        record_mark(queries.store, queries.project, key_source(settings), key, "Ann", action, "")
    news = read_news(queries, since)
    assert (news.rollbacks, news.marked) == (1, 1)
    assert read_news(queries, since + 2).rollbacks == 0


def text_of_keys():
    return text("SELECT node_key FROM prediction ORDER BY node_key")


def test_a_visit_is_remembered_until_the_next_one():
    first = Visits().visited(10 * DAY_NS)
    reloaded = first.visited(10 * DAY_NS + VISIT_GAP_NS - 1)
    assert (first.before_ns, reloaded.before_ns) == (0, 0)
    second = reloaded.visited(11 * DAY_NS)
    assert second.before_ns == 10 * DAY_NS + VISIT_GAP_NS - 1
    assert second.visited(11 * DAY_NS + 1).before_ns == second.before_ns
    assert Visits.from_text(second.as_text()) == second


@pytest.mark.parametrize("hostile", ["", ".", "1", "-1.2", "9" * 40 + ".1", "a.b", "\u0661.2"])
def test_a_cookie_that_is_none_of_ours_means_no_visits(hostile):
    assert Visits.from_text(hostile) == Visits()


def test_news_say_since_when(project):
    queries, _ = project
    now = queries.runs()[-1].decided_ns + 1
    assert "last 7 days" in news_line(queries, Visits(now, 0), now).headline
    line = news_line(queries, Visits(now, queries.runs()[-2].decided_ns), now)
    assert line.headline == "60 new nodes since your last visit"
    assert len(line.details) == 2


def test_nothing_waits_until_something_does(project):
    queries, _ = project
    with queries.store.transaction() as connection:
        connection.execute(text("DELETE FROM quarantine"))
    assert waiting_line(queries).headline == "Nothing waits for a person"
    with queries.store.transaction() as connection:
        connection.execute(text("UPDATE alarm SET state = 'firing' WHERE rule = 'drift'"))
    assert waiting_line(queries).headline == "1 alarm firing"


def test_where_nothing_is_broken_nothing_is_advised(project):
    assert find_next_step(project[0], broken=False) is None


def test_without_a_better_version_a_training_is_advised(broken):
    step = find_next_step(broken, broken=True)
    assert step.command.startswith("ringfence train")


def test_a_version_whose_shadow_sets_cover_more_is_named(broken, monkeypatch):
    """Only where the interval of the difference is above nothing."""
    from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary
    from ringfence.models.guarantee.paired_difference import PairedDifference

    insert_activation(broken.store, 1, "promoted")  # the older of two: another version to judge
    version = next(m.version for m in broken.models() if m.state != "active")
    better = PairedDifference(0.05, 0.02, 0.08)
    summary = ShadowSummary(version, 3, 90, 80, 0.95, 0.9, better, 1.2, 1.1, None, 3, None)
    monkeypatch.setattr(next_step, "read_shadows", lambda *_: {version: summary})
    step = find_next_step(broken, broken=True)
    assert step.command.startswith("ringfence promote")
    assert "5.0 points more of 80 known nodes" in step.why
    unsure = replace(summary, coverage_difference=replace(better, low=-0.01))
    monkeypatch.setattr(next_step, "read_shadows", lambda *_: {version: unsure})
    assert find_next_step(broken, broken=True).command.startswith("ringfence train")
