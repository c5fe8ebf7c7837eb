"""What doctor says of lists: the calibration nodes without which they stay empty."""

import pytest

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.migrate import migrate_sql
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.setup.checks.lists import check_lists
from tests.jobs.setup.test_sample_check import settings_of

CLEAR = {"name": "clear", "not": "mule", "may_be_wrong": 0.01}


def findings(folder, listed, filled_with=(), calibration=300):
    settings = settings_of(folder, lists=listed)
    store = open_store(settings.audit.url)
    migrate_sql(store)
    plan = Plan(runs=2, per_run=10, calibration=calibration)
    if filled_with is not None:
        fill_store(store, settings_of(folder, lists=list(filled_with)), plan)
    found = list(check_lists(store, settings))
    store.close()
    return found


@pytest.mark.parametrize(("calibration", "level"), [(300, "warning"), (600, "ok")])
def test_a_stream_that_clears_at_one_per_cent_takes_387_nodes(tmp_path, calibration, level):
    """A quarter of the calibration nodes are mules; no run decided the list yet."""
    (told,) = findings(tmp_path, [CLEAR | {"per": "stream"}], calibration=calibration)
    assert told.level == level
    given = 3 * calibration // 4
    assert told.text == (
        f"list clear: {given} calibration nodes are not mule, and 387 are needed before it can "
        "hold anybody"
    )
    assert ("ringfence advise --list clear" in told.fix) == (level == "warning")


@pytest.mark.parametrize(("share", "level"), [(0.01, "ok"), (0.001, "warning")])
def test_per_run_wrong_nodes_of_the_last_run_are_counted(tmp_path, share, level):
    """The made-up runs say that 9 of 300 calibration nodes are wrong."""
    listed = [CLEAR | {"may_be_wrong": share}]
    (told,) = findings(tmp_path, listed, listed)
    assert told.level == level
    assert told.text.startswith("list clear: 9 calibration nodes are mule, and ")
    assert "before a list of all right nodes can hold" in told.text


def test_nothing_is_said_without_lists_or_without_a_model(tmp_path):
    assert findings(tmp_path, []) == []
    assert findings(tmp_path / "new", [CLEAR], None) == []
