"""Runs of early classes alone are judged by no row, and swinging levels by no anytime bound."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import text

from ringfence.connector.records import UNSETTLED
from ringfence.connector.store.calibration.schedule import CalibratedRun
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.jobs.auditing.coverage_law import describe_swinging
from ringfence.jobs.auditing.shortfalls import find_shortfalls
from ringfence.jobs.auditing.unsettled_rows import find_unsettled
from ringfence.jobs.samples.audit_store import Plan
from ringfence.jobs.scoring.calibration.settled_runs import is_choice_of_classes
from ringfence.models.calibration.cohort import NEVER, SettledRuns
from tests.jobs.report.packs import make_record


def tally(seq, known, covered, adapt=False):
    counts = {"evaluated": 200, "known": known, "covered": covered}
    return Tally(
        seq=seq, model="m", rule="auto", score="APS", alpha=0.1, options="{}", n_calibration=500,
        effective_calibration=500.0, name="", counts=dict.fromkeys(COUNTS, 0) | counts,
        sums=dict.fromkeys(SUMS, 0.0), adapt=adapt,
    )  # fmt: skip


RUNS = [*(tally(seq, 200, 180) for seq in (1, 2, 3)), tally(4, 20, 8), tally(5, 20, 8)]


def by_row(**given):
    return {(row.slice, row.seq): row for row in coverage_rows(RUNS, (), (), 2, **given)}


def test_early_classes_alone_break_no_promise():
    before, now = by_row(), by_row(unsettled={4: 0, 5: 0})
    assert before["run", 5].verdict == "broken"
    assert before["total", 5].verdict == "broken"
    assert now["run", 5].verdict == now["window", 5].verdict == "not enough known yet"
    assert "only its early classes are known" in now["run", 5].words
    assert [now["run", seq].raised_by for seq in (3, 5)] == ["", UNSETTLED]
    assert now["window", 4].verdict == "kept"
    total = now["total", 5]
    assert (total.verdict, total.coverage, total.known) == ("kept", 0.9, 640)
    assert total.low <= total.coverage <= total.high
    assert total.words.startswith("kept: 90.0 % of 600 known nodes")
    assert "40 known nodes of runs of which only early classes are known" in total.words


def test_selected_nodes_are_said_where_they_wait():
    """Nodes that were listed or worked on before their run is settled; the control has none."""
    rows, control = by_row(unsettled={4: 15, 5: 12}), by_row(unsettled={4: 0, 5: 0})
    assert rows["run", 5].words.endswith("; 12 of these are selected: listed or worked on)")
    assert "; 27 of these are selected: listed or worked on" in rows["total", 5].words
    assert not any("selected" in row.words for row in control.values())
    for at, row in rows.items():
        assert replace(row, words="") == replace(control[at], words="")


def test_settled_runs_are_judged_as_ever():
    assert by_row() == by_row(unsettled={})
    assert by_row(unsettled={9: 0}) == by_row()


def test_a_decline_is_looked_for_in_settled_runs_alone():
    said = []
    for unsettled in ({}, {4: 0, 5: 0}):
        found = []
        coverage_rows(RUNS, (), (), 2, unsettled=unsettled, declines=found)
        said.append((found[0].runs, found[0].capital >= 100))
    assert said == [(5, True), (3, False)]


def group(seq, known, covered):
    return replace(tally(seq, known, covered), name="region=a")


@pytest.mark.parametrize("of_group", [[*(group(seq, 200, 180) for seq in (1, 2, 3))], []])
def test_early_classes_make_no_group_fall_short(of_group):
    of_group = [*of_group, group(4, 60, 24), group(5, 60, 24)]
    said = []
    for unsettled in ({}, {4: 0, 5: 0}):
        rows = coverage_rows(RUNS, (), of_group, 2, unsettled=unsettled)
        (row,) = (row for row in rows if row.slice == "group")
        said.append((row.verdict, bool(find_shortfalls([replace(row, coverage=0.4)]))))
    kept = "kept" if len(of_group) > 2 else "not enough known yet"
    assert said == [("watch", True), (kept, False)]


def test_a_group_with_a_promise_of_its_own_is_not_broken_by_early_classes():
    own = {"promise": "group", "options": '{"group": "region"}'}
    runs = [replace(run, **own) for run in RUNS]
    of_group = [replace(group(run.seq, *known), **own) for run, known in zip(
        RUNS, [(200, 180)] * 3 + [(60, 24)] * 2, strict=True)]  # fmt: skip
    verdicts = []
    for unsettled in ({}, {4: 0, 5: 0}):
        rows = coverage_rows(runs, (), of_group, 2, unsettled=unsettled)
        (row,) = (row for row in rows if row.slice == "group")
        assert row.own_promise
        verdicts.append(row.verdict)
    assert verdicts == ["broken", "kept"]


def settled(delays):
    nobody, usual = np.zeros(3, bool), np.array([0.1, 0.9])
    return SettledRuns(nobody, nobody, 1, 90, usual, np.array(delays))


def test_known_nodes_of_one_class_are_a_choice_and_a_fair_draw_is_not():
    late = settled([1, NEVER])
    assert is_choice_of_classes(np.array([20, 0]), late)
    assert is_choice_of_classes(np.array([3, 0]), late)  # never seen: few nodes are enough
    assert not is_choice_of_classes(np.array([3, 27]), settled([1, 1]))
    assert not is_choice_of_classes(np.array([0, 0]), late)


def swinging(delay, judged_today):
    runs = [tally(seq, 200, 180, adapt=True) for seq in range(1, 150)]
    schedule = [
        CalibratedRun(
            run.seq, 500, "frozen", {}, (run.seq - delay - 1,) if run.seq > delay + 1 else (), 0.05,
            judged_today=judged_today,
        )
        for run in runs
    ]  # fmt: skip
    rows = coverage_rows(runs, (), (), 10, {"m": schedule})
    return describe_swinging(runs, schedule), [row for row in rows if row.slice == "total"][-1]


def test_a_level_that_swings_by_itself_gets_no_verdict_over_many_runs():
    reason, total = swinging(60, judged_today=False)
    assert "classes come 60 runs late" in reason
    assert total.verdict == "no verdict"
    assert "no verdict over many runs: classes come 60 runs late" in total.words
    for delay, judged_today in ((60, True), (7, False)):
        reason, total = swinging(delay, judged_today)
        assert reason == ""
        assert total.verdict == "kept"


def test_of_runs_that_wait_the_listed_nodes_are_counted(tmp_path):
    """Classes of listed nodes and the audit sample alone; the control has those of everybody."""
    settings = make_record(tmp_path, Plan(runs=4, per_run=200, known=0.9))
    with closing(open_store(settings.audit.url)) as store:
        assert find_unsettled(store, settings, None) == {}
        with store.transaction() as connection:
            connection.execute(
                text("UPDATE prediction SET label = NULL WHERE lists IS NULL AND NOT sampled")
            )
        found = find_unsettled(store, settings, None)
        with store.reading() as connection:
            listed = dict(connection.execute(
                text("SELECT seq, count(*) FROM prediction WHERE lists IS NOT NULL AND NOT sampled "
                     "AND label IS NOT NULL GROUP BY seq")
            ).all())  # fmt: skip
        assert found == listed
        assert set(found) == {1, 2, 3, 4}
