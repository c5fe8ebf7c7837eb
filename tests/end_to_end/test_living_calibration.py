"""Nodes whose class became known calibrate later runs: through graph, SQL, chain and back."""

import json

import pytest
from sqlalchemy import select, update

from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.store import runs, tables
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.samples.accounts import batches
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training

RUNS = 7


def with_conformal(workspace, **values):
    part = workspace.settings.conformal.model_copy(update=values)
    return workspace.settings.model_copy(update={"conformal": part})


def play(grown, workspace, runs_=RUNS):
    """Score small batches; the classes of a run become known after the next one."""
    first, *parts = batches(grown.sample, [300, *[20] * runs_])
    reports, known = [], first.nodes[:0]
    for part in parts:
        grown.arrive(part)
        reports.append(run_scoring(workspace))
        grown.reveal(known)
        run_audit(workspace)
        known = part.nodes
    return reports


def joined_rows(workspace):
    with workspace.store.reading() as connection:
        return connection.execute(select(tables.joined)).all()


def _require_recorded_levels(workspace, reports):
    """Each run compares p-values with the level that the misses on record give."""
    level = 0.1
    for report in reports:
        recorded = report.run.levels
        for answer in recorded["answered"]:
            level += 0.05 * (0.1 - answer["missed"][0] / answer["known"])
        assert recorded["used"][0] == pytest.approx(level)
        assert report.run.level == recorded["used"][0]
    assert recorded["adaptive"][0]["answered"] > 1
    assert level != 0.1
    with workspace.store.reading() as connection:
        rows = connection.execute(
            select(tables.prediction).where(tables.prediction.c.seq == reports[-1].seq)
        )
        for row in rows:
            inside = sum(p > recorded["used"][0] for p in json.loads(row.p_values))
            assert row.size == inside


@pytest.mark.slow
def test_known_nodes_join_once_calibrate_later_runs_and_are_under_the_chain(grown):
    settings = with_conformal(grown.workspace, calibration_set="growing", adapt=True)
    with open_workspace(settings) as workspace:
        run_training(workspace)
        reports = play(grown, workspace)
        sizes = [report.run.n_calibration for report in reports]
        rows = joined_rows(workspace)
        assert sizes[0] == sizes[4] < sizes[5] < sizes[6]
        assert len({row.node_key for row in rows}) == len(rows) == sizes[6] - sizes[0]
        assert all(row.seq > row.evaluated_seq + 1 for row in rows)
        assert any("joined by this run" in note for note in reports[-1].run.notes)
        assert run_verification(workspace).problems == ()
        _require_recorded_levels(workspace, reports)

        own = tables.joined.c.node_key == rows[0].node_key
        other = "normal" if rows[0].label != "normal" else "mule"
        with workspace.store.transaction() as connection:
            connection.execute(update(tables.joined).where(own).values(label=other))
        assert any("joined by run" in one for one in run_verification(workspace).problems)
        with pytest.raises(StoreError, match="joined the calibration"):
            run_scoring(workspace)


@pytest.mark.slow
def test_a_frozen_set_stays_that_of_the_training(grown):
    with open_workspace(with_conformal(grown.workspace, calibration_set="frozen")) as workspace:
        run_training(workspace)
        reports = play(grown, workspace)
        assert len({report.run.n_calibration for report in reports}) == 1
        assert joined_rows(workspace) == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"drift_half_life_days": 30.0, "calibration_set": "frozen"}, "all weights shrink"),
        ({"rule": "EdgeEx", "calibration_set": "window"}, "ends of sampled edges"),
    ],
)
def test_a_way_to_calibrate_that_breaks_the_promise_is_refused(grown, given, reason):
    run_training(grown.workspace)
    with open_workspace(with_conformal(grown.workspace, **given)) as workspace:
        with pytest.raises(ConfigError, match=reason):
            run_scoring(workspace)
        assert runs.next_seq(workspace.store, workspace.project) == 1
