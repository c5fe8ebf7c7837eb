"""Known and unknown nodes are compared within runs: a graph that grew between two is no bias."""

import pytest
from sqlalchemy import text

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.models.guarantee.selection import (
    LARGE_DIFFERENCE,
    Moments,
    difference_within_runs,
)

LABELLED_THEN_NOT = Plan(runs=2, per_run=400, known_runs=1, degree_growth=2.5)
"""Classes of the first run are known, of the second none; nodes have more neighbours by then."""


@pytest.fixture
def fill(tmp_path):
    stores = []

    def filled(plan):
        values = {
            "project": "p",
            "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
            "alarms": {"rules": ["bias"]},
        }
        settings = load_values(values, tmp_path / "ringfence.toml", {})
        store = open_store(settings.audit.url)
        stores.append(store)
        fill_store(store, settings, plan)
        return ProjectQueries(store, "p")

    yield filled
    for store in stores:
        store.close()


def pooled_degree_difference(queries):
    """Degrees of all known nodes beside all unknown ones, whatever their runs."""
    sums = "SELECT count(*), sum(degree), sum(degree * degree) FROM prediction WHERE label IS "
    with queries.store.reading() as connection:
        known = Moments(*connection.execute(text(sums + "NOT NULL")).one())
        unknown = Moments(*connection.execute(text(sums + "NULL")).one())
    return abs(difference_within_runs("degree", [(known, unknown)]).d)


def alarm_state(queries):
    return {alarm.rule: alarm.state for alarm in queries.alarms()}["bias"]


def test_an_unlabelled_new_run_beside_a_labelled_old_one_is_no_biased_sample(fill):
    queries = fill(LABELLED_THEN_NOT)
    # the control: pooled over the runs, as comparisons once were, it would be called biased
    assert pooled_degree_difference(queries) > 0.6 > LARGE_DIFFERENCE
    assert queries.total().bias < LARGE_DIFFERENCE
    assert "biased sample" not in queries.total().bias_words
    assert alarm_state(queries) == "ok"


def test_classes_that_become_known_by_degree_are_a_biased_sample_within_runs(fill):
    """The other control: the alarm can ring."""
    queries = fill(Plan(runs=2, per_run=400, known_from_degree=7))
    assert queries.total().bias > LARGE_DIFFERENCE
    assert "biased sample" in queries.total().bias_words
    assert alarm_state(queries) == "firing"
