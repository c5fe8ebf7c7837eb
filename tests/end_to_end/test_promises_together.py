"""Promises in the modes that go together: per class in a living window, and weights by degree.

Through configuration, training, runs, p-values, SQL, graph, chain and the audit's verdicts.
"""

import json

import pytest

from ringfence.connector.store import runs, tables
from ringfence.connector.store.models import class_names
from ringfence.jobs.auditing.audit import count_coverage, run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.samples.accounts import batches
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from tests.end_to_end.test_own_promises import rows_of, with_conformal

RUNS = 7


@pytest.fixture
def sql_url(tmp_path):
    return f"sqlite:///{tmp_path / 'ringfence.db'}"


def play(grown, workspace):
    """Small batches in turn; the classes of a run become known after the next one."""
    known, reports = grown.first.nodes[:0], []
    for part in list(batches(grown.sample, [300, *[20] * RUNS]))[1:]:
        grown.arrive(part)
        reports.append(run_scoring(workspace))
        grown.reveal(known)
        audit = run_audit(workspace)
        known = part.nodes
    return reports, audit


@pytest.mark.long
def test_a_promise_per_class_in_a_living_window_at_adaptive_levels(grown):
    settings = with_conformal(
        grown.workspace, promise="class", alpha=0.2, classes={"mule": 0.3},
        calibration_set="window", window_nodes=500, adapt=True, adapt_step=0.1,
    )  # fmt: skip
    with open_workspace(settings) as workspace:
        trained = run_training(workspace)
        classes = class_names(workspace.store, "test")[trained.version]
        reports, audit = play(grown, workspace)
        alphas = {name: 0.3 if name == "mule" else 0.2 for name in classes}
        first, last = (runs.one_run(workspace.store, "test", reports[at].seq) for at in (0, -1))
        assert first.levels["used"][0] == alphas

        # nodes of the first runs joined, and each class's level moved by its own misses alone
        joined = rows_of(workspace, tables.joined)
        assert joined
        states = {one["class"]: one for one in last.levels["adaptive"]}
        assert set(states) == set(classes)
        assert any(one["answered"] for one in states.values())
        moved = {name for name in classes if last.levels["used"][0][name] != alphas[name]}
        assert moved
        assert moved <= {name for name, one in states.items() if one["answered"]}
        assert all(one["alpha"] == alphas[name] for name, one in states.items())

        # sets are what p-values and the levels of the classes say, in SQL and in the graph
        used = last.levels["used"][0]
        predictions = rows_of(workspace, tables.prediction, seq=last.seq)
        for row in predictions:
            p = dict(zip(classes, json.loads(row.p_values), strict=True))
            assert json.loads(row.classes) == [name for name in classes if p[name] > used[name]]
        shown = workspace.graph.read(
            "MATCH (n:Account)-[e:EVALUATED]->(:RingfenceRun {seq: $seq}) "
            "OPTIONAL MATCH (n)-[m:MAY_BE {in_set: true}]->(:RingfenceClass) "
            "RETURN n.id AS id, e.size AS size, count(m) AS held",
            seq=last.seq,
        )
        assert len(shown) == len(predictions)
        assert all(row["size"] == row["held"] for row in shown)
        thresholds = rows_of(workspace, tables.threshold, seq=last.seq)
        assert {row._mapping["class"] for row in thresholds} == set(classes)
        assert any(
            mine.n_calibration > before.n_calibration
            for mine in thresholds
            for before in rows_of(workspace, tables.threshold, seq=first.seq)
            if mine._mapping["class"] == before._mapping["class"] and mine.band == before.band
        )

        # every class has rows and verdicts of its own, counted the same again, under the chain
        rows = {row.name: row for row in audit.rows if row.slice == "class"}
        assert {row.label for row in joined} <= set(rows) <= set(classes)
        assert all(row.own_promise and row.alpha == alphas[name] for name, row in rows.items())
        assert count_coverage(workspace.store, workspace.settings) == list(audit.rows)
        assert run_verification(workspace).problems == ()


def test_weights_by_the_shift_of_degrees_are_recorded_and_used(grown):
    settings = with_conformal(grown.workspace, weights="shift", alpha=0.2)
    with open_workspace(settings) as workspace:
        trained = run_training(workspace)
        report = run_scoring(workspace)
        grown.arrive(grown.later[0])
        run = runs.one_run(workspace.store, "test", run_scoring(workspace).seq)
        manifest = json.loads(next(workspace.models.glob("*/manifest.json")).read_text())
        assert manifest["promise"]["weights"] == "shift"
        weights = run.shift["weights"]
        assert 0 < weights["effective"] < weights["nodes"] == run.n_calibration
        assert 1 <= weights["largest"] <= 20
        (stratum,) = rows_of(workspace, tables.threshold, seq=run.seq)  # all nodes, no bands
        assert stratum.effective_calibration == pytest.approx(weights["effective"])
        assert any("weighted by degree as due nodes have it" in note for note in run.notes)

        # p-values are weighted: not all are a multiple of 1 / (n + 1), and the sets follow them
        classes = class_names(workspace.store, "test")[trained.version]
        predictions = rows_of(workspace, tables.prediction, seq=run.seq)
        p_values = [json.loads(row.p_values) for row in predictions]
        level = run.levels["used"][0] if isinstance(run.levels, dict) else 0.2
        for row, p in zip(predictions, p_values, strict=True):
            held = [name for name, one in zip(classes, p, strict=True) if one > _of(level, name)]
            assert json.loads(row.classes) == held
        steps = [one * (run.n_calibration + 1) for row in p_values for one in row]
        assert any(abs(one - round(one)) > 1e-6 for one in steps)

        grown.reveal(grown.first.nodes[~grown.labelled[grown.first.nodes]])
        audit = run_audit(workspace)
        assert {row.seq for row in audit.rows if row.slice == "run"} >= {report.seq}
        assert run_verification(workspace).problems == ()


def _of(level, name):
    return level[name] if isinstance(level, dict) else level
