"""Charts carry marks where versions were taken into use or the configuration changed."""

import pytest
from sqlalchemy import text

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.changes import CONFIGURATION, MAX_CHANGES, read_changes
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.samples.audit_store import DAY_NS, Plan, fill_store
from ringfence.jobs.views import charts
from ringfence.jobs.views.renderers import svg
from tests.dashboard.conftest import settings_at

HOSTILE = "<b>20261119T042137444770-b01298c1</b>"


def insert_activation(store, at_ns, how):
    with store.transaction() as connection:
        columns = [row[1] for row in connection.execute(text("PRAGMA table_info(model)"))]
        copied = ", ".join(":version" if name == "version" else name for name in columns)
        copy = f"INSERT OR IGNORE INTO model ({', '.join(columns)}) SELECT {copied} FROM model"
        connection.execute(text(f"{copy} WHERE version = 'sample-1'"), {"version": HOSTILE})
        connection.execute(
            text(
                "INSERT INTO activation (project, n, at_ns, version, was, how, reason, actor) "
                "SELECT project, 1 + max(n), :at_ns, :version, 'sample-1', :how, 'better', '{}' "
                "FROM activation GROUP BY project"
            ),
            {"at_ns": at_ns, "version": HOSTILE, "how": how},
        )


def change_settings(store, seq):
    with store.transaction() as connection:
        statement = "UPDATE run SET config = 'other', alpha = 0.2 WHERE seq >= :seq"
        connection.execute(text(statement), {"seq": seq})


@pytest.fixture
def changed(tmp_path):
    settings = settings_at(tmp_path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=6, per_run=30, days_apart=1.0))
    queries = ProjectQueries(store, settings.project)
    yield queries
    store.close()


def test_without_changes_there_is_no_mark_and_the_first_model_is_none(changed):
    assert read_changes(changed) == []
    figure = charts.thresholds(changed.runs())
    assert charts.with_changes([figure], []) == [figure]


def test_promotion_rollback_and_configuration_are_marked_where_they_happened(changed):
    runs = changed.runs()
    insert_activation(changed.store, runs[1].decided_ns + 1, "promoted")
    insert_activation(changed.store, runs[2].decided_ns + 1, "rolled back")
    change_settings(changed.store, runs[4].seq)
    changes = read_changes(changed)
    assert [change.kind for change in changes] == ["promotion", "rollback", "configuration"]
    assert changes[-1].at_ns == runs[4].decided_ns
    assert changes[-1].words == f"run {runs[4].seq}: alpha 0.1 to 0.2"
    (figure,) = charts.with_changes([charts.thresholds(changed.runs())], changes)
    marks = figure.panels[0].marks
    assert [mark.letter for mark in marks] == ["P", "R", "C"]
    assert marks[0].x == pytest.approx(runs[1].decided_ns / 1e6)
    assert "b01298c1" in figure.caption
    assert "20261119T" not in figure.caption
    drawn = svg.draw(figure)
    assert ">R</text>" in drawn
    assert "<b>" not in drawn
    within = changed.within(runs[3].decided_ns, runs[5].decided_ns + DAY_NS)
    assert [change.kind for change in read_changes(within)] == [CONFIGURATION]


def test_a_change_outside_the_runs_that_are_drawn_is_not_marked(changed):
    runs = changed.runs()
    insert_activation(changed.store, runs[-1].decided_ns + DAY_NS, "promoted")
    (figure,) = charts.with_changes([charts.thresholds(runs)], read_changes(changed))
    assert figure.panels[0].marks == ()


def test_marks_are_bounded(changed):
    last = changed.runs()[-1].decided_ns
    for number in range(MAX_CHANGES + 5):
        insert_activation(changed.store, last - 1000 + number, "promoted")
    assert len(read_changes(changed)) == MAX_CHANGES
