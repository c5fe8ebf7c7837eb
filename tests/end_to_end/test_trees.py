"""`[model] network = "trees"` through train, score, audit, explain, rescore and retrain."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.models import members
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.engines.partitioned import PartitionedEngine
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.promotion import run_promotion, run_rollback
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.repeat import run_repeat
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import run_explain
from tests.orders import ORDERS, REVEAL, TREES, order_projects
from tests.stores import postgresql_later, sqlite

pytestmark = pytest.mark.slow
make = order_projects


@postgresql_later
def test_trees_through_all_that_a_version_can_do(graph, make, tmp_path):
    workspace = make()
    graph.run("MATCH (o:Order) WHERE o.risk IS NULL DETACH DELETE o")
    trained = run_training(workspace)
    assert trained.network == "trees"
    assert trained.calibration_accuracy > 0.85  # the class stands at the shop
    require_latest_validation(workspace, trained.version)
    require_plain_arrays(workspace)
    again = run_repeat(workspace, trained.version)
    assert (again.equal, again.differences) == (True, ())
    assert trained.comparison is not None  # with the baselines, on the holdout

    graph.run(ORDERS, first=600, count=40, known=False)
    first = run_scoring(workspace)
    assert first.evaluated == 40
    assert "rounds of trees at" in first.run.notes[0]
    assert "nothing was kept" in first.run.notes[0]
    require_no_learning_libraries(make.environment, tmp_path)

    graph.run(ORDERS, first=660, count=20, known=False)
    assert "encoded rows were kept" in run_scoring(workspace).run.notes[0]
    require_reasons(workspace, graph)
    graph.run(REVEAL)
    run_audit(workspace)
    assert run_rescoring(workspace, ["661"], "an appeal").sets
    assert run_verification(workspace).problems == ()

    second = run_training(workspace)  # a retraining, compared with the version in use
    assert second.state == "candidate"
    run_promotion(workspace, second.version, "newer classes")
    graph.run(ORDERS, first=700, count=10, known=False)
    assert run_scoring(workspace).evaluated == 10
    run_rollback(workspace, "the older one was better")
    graph.run(ORDERS, first=720, count=10, known=False)
    assert run_scoring(workspace).evaluated == 10
    card = read_card(workspace.store, workspace.project, second.version)
    assert ("network", "trees (leaves 12)") in card.sections[0].rows


def require_latest_validation(workspace, version):
    """Trees stop by the latest of the nodes that are neither calibration nor holdout."""
    times = {
        role: [m.created_ns for m in members(workspace.store, workspace.project, version, role)]
        for role in ("train", "validation", "calibration")
    }
    assert max(times["train"]) < min(times["validation"])
    assert min(times["calibration"]) < np.median(times["train"])  # which stay a random part


def require_plain_arrays(workspace):
    (file,) = workspace.models.glob("*/weights.safetensors")
    with safe_open(file, "numpy") as arrays:
        names = set(arrays.keys())
    assert {"network.trees.threshold", "network.trees.value", "network.trees.column"} <= names
    manifest = json.loads((file.parent / "manifest.json").read_text())
    assert (
        "AT Shop: count" in manifest["tree_columns"]
        or "rev_AT Shop: count" in manifest["tree_columns"]
    )
    assert "AFTER Order: count" not in manifest["tree_columns"]  # only with degrees
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "manifest.json", "weights.safetensors",
    ]  # fmt: skip


def require_no_learning_libraries(environment, tmp_path):
    """A run in a process of its own imports neither torch nor scikit-learn."""
    code = (
        "import sys; from ringfence.jobs.cli.app import main; sys.argv = ['ringfence', 'score', "
        f"'--config', {str(tmp_path / 'state.toml')!r}]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print(sorted({'torch', 'sklearn', 'numba'} & set(sys.modules)))"
    )
    variables = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=variables, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "torch" not in done.stdout.splitlines()[-1]
    assert "sklearn" not in done.stdout.splitlines()[-1]


def require_reasons(workspace, graph):
    """Exact reasons: p-values are those on record, the shop matters more than the note."""
    told = run_explain(workspace, "664", why=True)
    why = told.reasons
    assert why.method == "exact"
    recorded = {value.class_: value.p for value in told.p_values}
    assert dict(zip(why.classes, why.p_values, strict=True)) == pytest.approx(recorded)
    parts = {reason.part.describe(): reason for reason in why.reasons}
    (shop,) = (name for name in parts if name.startswith("neighbour Shop"))
    assert {"column amount", "column note"} <= set(parts)
    assert parts[shop].moved > parts["column note"].moved
    with pytest.raises(ConfigError, match="needs gradients"):
        run_explain(workspace, "664", why=True, explainer="GNNExplainer")


@sqlite
def test_what_is_kept_changes_no_bit(graph, make):
    """Sets after late relationships, deletions and changed columns: as if nothing were kept."""
    same = f"{TREES}\nholdout = 0"  # a holdout is drawn by the project's name
    projects = {name: make(same, folder=name) for name in ("kept", "anew")}
    versions = [run_training(workspace).version for workspace in projects.values()]
    assert versions[0][-8:] == versions[1][-8:]  # the digest of the weights
    steps = (
        "MATCH (s:Shop {name: 'shop 3'}) SET s.country = 'fr'",
        "MATCH (a:Order {id: 10}), (b:Order {id: 40}) CREATE (a)-[:AFTER]->(b)",
        "MATCH (s:Shop {name: 'shop 4'}) DETACH DELETE s",
        "MATCH (o:Order {id: 12})-[r:AT]->() DELETE r SET o.amount = 1.0",
    )
    for step, change in enumerate(steps):
        graph.run(ORDERS, first=600 + 10 * step, count=10, known=False)
        graph.run(change)
        outcomes = []
        for name, workspace in projects.items():
            if name == "anew":
                shutil.rmtree(workspace.tables, ignore_errors=True)
                shutil.rmtree(workspace.mirror, ignore_errors=True)
            report = run_scoring(workspace)
            outcomes.append((report.run.threshold, report.sizes, report.run.calibration_scores))
        assert outcomes[0] == outcomes[1]


@sqlite
def test_a_candidate_of_trees_shadows_a_network(graph, make):
    workspace = make("hidden = 8\nmax_epochs = 20\nshadow = true")
    network = run_training(workspace)
    assert network.network == "typed_sage"
    trees = run_training(make("shadow = true\n" + TREES))
    assert (trees.network, trees.state) == ("trees", "candidate")
    assert trees.comparison is not None
    graph.run(ORDERS, first=600, count=30, known=False)
    report = run_scoring(workspace)
    assert report.evaluated >= 30
    assert report.run.model == network.version


def test_ray_refuses_trees_with_what_to_do():
    class Engine(PartitionedEngine):
        def open_workers(self, folder):
            raise AssertionError

        def close(self):
            pass

    with pytest.raises(ConfigError, match="can't compute the network trees yet") as error:
        Engine("ray").require_network("trees")
    assert error.value.next_step == 'set [engine] kind = "local"'


def test_one_label_refuses_trees(tmp_path):
    path = tmp_path / "ringfence.toml"
    path.write_text(
        '[neo4j]\nuri = "bolt://localhost:1"\n[graph]\nlabel = "A"\nkey = "id"\n'
        'features = "x"\nclass_property = "y"\ncreated_at = "t"\n[model]\nnetwork = "trees"\n'
    )
    with pytest.raises(ConfigError, match="reads raw columns") as error:
        load_settings(path, {})
    assert error.value.needed
    assert error.value.next_step
