"""Nodes whose class became known calibrate later runs: through graph, SQL, chain and back."""

import json

import pytest
from sqlalchemy import insert, select, update

from ringfence.connector.errors import ConfigError, StoreError
from ringfence.connector.store import runs, tables
from ringfence.connector.store.models import members
from ringfence.connector.store.predictions import evaluated_keys
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.promotion import run_promotion, run_rollback
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.samples.accounts import batches
from ringfence.jobs.scoring.class_trade_off import run_trade_off
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from tests.stores import postgresql_later, sqlite

RUNS = 7


def with_conformal(workspace, **values):
    part = workspace.settings.conformal.model_copy(update=values)
    return workspace.settings.model_copy(update={"conformal": part})


class Parts:
    """Small batches, scored in turn; the classes of a run become known after the next one."""

    def __init__(self, grown, workspace, parts):
        self.grown, self.workspace, self.parts = grown, workspace, list(parts)
        self.known = self.parts[0].nodes[:0]

    def play(self, runs_):
        reports = []
        for _ in range(runs_):
            part = self.parts.pop(0)
            self.grown.arrive(part)
            reports.append(run_scoring(self.workspace))
            self.grown.reveal(self.known)
            run_audit(self.workspace)
            self.known = part.nodes
        return reports


def play(grown, workspace, runs_=RUNS):
    parts = list(batches(grown.sample, [300, *[20] * runs_]))[1:]
    return Parts(grown, workspace, parts).play(runs_)


def joined_rows(workspace):
    with workspace.store.reading() as connection:
        return connection.execute(select(tables.joined)).all()


def _true_p_values(workspace, seq):
    """p-values of the true classes of a run's nodes; every class of it became known at once."""
    classes = ProjectQueries(workspace.store, workspace.project).models()[-1].classes
    with workspace.store.reading() as connection:
        rows = connection.execute(select(tables.prediction).where(tables.prediction.c.seq == seq))
        return [json.loads(row.p_values)[classes.index(row.label)] for row in rows if row.label]


def _require_recorded_levels(workspace, reports):
    """Each run compares p-values with the level that the misses on record give, judged that day."""
    level = 0.1
    for report in reports:
        recorded = report.run.levels
        for answer in recorded["answered"]:
            p_true = _true_p_values(workspace, answer["run"])
            assert len(p_true) == answer["known"]
            level += 0.05 * (0.1 - sum(p <= level for p in p_true) / len(p_true))
        assert recorded["used"][0] == pytest.approx(level)
        assert report.run.level == recorded["used"][0]
        assert recorded["settled"]["words"] == [
            note for note in report.run.notes if note in recorded["settled"]["words"]
        ]
    assert recorded["settled"]["delay"] == 2
    assert any("classes usually come 2 runs late; the level answers runs up to run 5" in note
               for note in reports[-1].run.notes)  # fmt: skip
    assert recorded["adaptive"][0]["answered"] > 1
    assert level != 0.1
    with workspace.store.reading() as connection:
        rows = connection.execute(
            select(tables.prediction).where(tables.prediction.c.seq == reports[-1].seq)
        )
        for row in rows:
            inside = sum(p > recorded["used"][0] for p in json.loads(row.p_values))
            assert row.size == inside


def _require_advice_for_the_next_run(grown, workspace):
    """What a promise to a class would rest on is what the next run calibrates with."""
    version = ProjectQueries(workspace.store, workspace.project).models()[-1]
    counted = [run_trade_off(workspace, name).calibration for name in version.classes]
    grown.arrive(list(batches(grown.sample, [300, *[20] * (RUNS + 1)]))[-1])
    of_training = members(workspace.store, workspace.project, version.version, "calibration")
    assert sum(counted) == run_scoring(workspace).run.n_calibration > len(of_training)


@postgresql_later
@pytest.mark.slow
def test_known_nodes_join_once_calibrate_later_runs_and_are_under_the_chain(grown):
    settings = with_conformal(grown.workspace, calibration_set="growing", adapt=True)
    with open_workspace(settings) as workspace:
        run_training(workspace)
        reports = play(grown, workspace)
        sizes = [report.run.n_calibration for report in reports]
        rows = joined_rows(workspace)
        assert sizes[0] == sizes[2] < sizes[3] < sizes[6]  # the second run is known whole by then
        assert len({row.node_key for row in rows}) == len(rows) == sizes[6] - sizes[0]
        assert all(row.seq > row.evaluated_seq + 1 for row in rows)
        assert any("joined by this run" in note for note in reports[-1].run.notes)
        assert run_verification(workspace).problems == ()
        _require_recorded_levels(workspace, reports)
        _require_advice_for_the_next_run(grown, workspace)

        own = tables.joined.c.node_key == rows[0].node_key
        other = "normal" if rows[0].label != "normal" else "mule"
        with workspace.store.transaction() as connection:
            connection.execute(update(tables.joined).where(own).values(label=other))
        assert any("joined by run" in one for one in run_verification(workspace).problems)
        with pytest.raises(StoreError, match="joined the calibration"):
            run_scoring(workspace)


@postgresql_later
@pytest.mark.slow
def test_a_frozen_set_stays_that_of_the_training(grown):
    with open_workspace(with_conformal(grown.workspace, calibration_set="frozen")) as workspace:
        run_training(workspace)
        reports = play(grown, workspace)
        assert len({report.run.n_calibration for report in reports}) == 1
        assert joined_rows(workspace) == []


@postgresql_later
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"drift_half_life_days": 30.0, "calibration_set": "frozen"}, "all weights shrink"),
        ({"rule": "EdgeEx", "calibration_set": "window"}, "ends of sampled edges"),
    ],
)
def test_a_way_to_calibrate_that_breaks_the_promise_is_refused(trained, given, reason):
    with open_workspace(with_conformal(trained.workspace, **given)) as workspace:
        with pytest.raises(ConfigError, match=reason):
            run_scoring(workspace)
        assert runs.next_seq(workspace.store, workspace.project) == 1


@pytest.mark.slow
@sqlite
def test_versions_calibrate_with_what_other_versions_evaluated(grown):
    """Two versions in turn: each run's calibration has the known nodes of both, none learnt."""
    settings = with_conformal(grown.workspace, calibration_set="growing", adapt=True)
    with open_workspace(settings) as workspace:
        first = run_training(workspace).version
        parts = Parts(grown, workspace, list(batches(grown.sample, [300, *[20] * 10]))[1:])
        by_first = parts.play(5)
        second = run_training(workspace).version
        drawn = members(workspace.store, workspace.project, second, "calibration")
        evaluated = evaluated_keys(workspace.store, workspace.project)
        assert {one.node_key for one in drawn} & set(evaluated)  # a fresh draw has them too
        run_promotion(workspace, second, "newer classes")
        by_second = parts.play(3)
        run_rollback(workspace, "not better")
        back = parts.play(2)

        seqs = {report.seq for report in by_second}
        rows = joined_rows(workspace)
        assert {row.evaluated_seq for row in rows if row.version == second} >= {by_first[-1].seq}
        assert {row.evaluated_seq for row in rows if row.version == first} & seqs
        assert any("evaluated by another version" in note for note in back[-1].run.notes)
        learnt = {one.node_key for one in members(workspace.store, workspace.project, second)}
        assert not learnt & {row.node_key for row in rows if row.version == second}
        _require_own_level(workspace, by_first, by_second, back)
        keys = evaluated_keys(workspace.store, workspace.project)
        assert (
            len(keys)
            == len(set(keys))
            == sum(report.evaluated for report in [*by_first, *by_second, *back])
        )
        assert run_verification(workspace).problems == ()

        own = next(row for row in rows if row.version == second)
        with workspace.store.transaction() as connection:
            connection.execute(
                insert(tables.member).values(
                    project=workspace.project, version=second, node_key=own.node_key,
                    role="train", class_index=0,
                )
            )  # fmt: skip
        assert any("train nodes of its training" in p for p in run_verification(workspace).problems)


def _require_own_level(workspace, by_first, by_second, back):
    """A version's level begins at alpha, answers for its own runs, and comes back with it."""
    assert by_second[0].run.levels["used"] == [0.1]
    own = {report.seq for report in [*by_first, *back]}
    level = by_first[-1].run.levels["used"][0]
    for report in back:
        for answer in report.run.levels["answered"]:
            assert answer["run"] in own
            p_true = _true_p_values(workspace, answer["run"])
            level += 0.05 * (0.1 - sum(p <= level for p in p_true) / len(p_true))
        assert report.run.levels["used"][0] == pytest.approx(level)
    of_second = {report.seq for report in by_second}
    answers = [answer["run"] for report in by_second for answer in report.run.levels["answered"]]
    assert set(answers) <= of_second
