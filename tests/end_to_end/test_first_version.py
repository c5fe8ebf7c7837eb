"""A project of the first version, made by that version's own code, goes on with this one.

The first version is taken out of the repository's history; both run on the same real databases.
"""

import json
import os
import subprocess
import sys

import pytest

from ringfence.connector.store import predictions
from ringfence.connector.store.models import active_manifest
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.retention.prune import run_prune
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from tests.old_versions import open_version

FIRST_VERSION = "3f694fd"

MAKE_PROJECT = """
import json, sys
from pathlib import Path
from ringfence.jobs.auditing import run_audit
from ringfence.jobs.config import load
from ringfence.jobs.migrating import run_migrations
from ringfence.jobs.sample_graph import run_sample
from ringfence.jobs.scoring import run_scoring
from ringfence.jobs.training import run_training
from ringfence.jobs.workspace import open_workspace

with open_workspace(load(Path(sys.argv[1]))) as workspace:
    run_migrations(workspace)
    run_sample(workspace.graph, 300, "node", 0.5, 7, lambda *_: None)
    trained = run_training(workspace)
    scored = run_scoring(workspace)
    even = "MATCH (n:Account) WHERE n.kind IS NULL AND n.id % 2 = 0 SET n.kind = 'mule'"
    workspace.graph.run(even)
    audited = run_audit(workspace)
print(json.dumps({"version": trained.version, "evaluated": scored.evaluated,
                  "known": audited.newly_known}))
"""

ARRIVE = """
MATCH (old:Account) WITH old ORDER BY old.id LIMIT 20
WITH collect(old) AS old
UNWIND range(0, 19) AS i
WITH i, old[i] AS other
CREATE (n:Account {id: 9001 + i, features: other.features, created_at: datetime.realtime()})
CREATE (n)-[:PAID {created_at: datetime.realtime()}]->(other)
"""


@pytest.fixture(scope="module")
def first_version():
    """The first version's tree, importable as `ringfence` from the folder above it."""
    return open_version(FIRST_VERSION)


def make_with_first_version(first_version, settings, folder):
    neo4j, audit = settings.neo4j, settings.audit
    environment = os.environ | {
        "PYTHONPATH": str(first_version),
        "RINGFENCE_NEO4J_USER": neo4j.user,
        "RINGFENCE_NEO4J_PASSWORD": neo4j.password.get_secret_value(),
        "RINGFENCE_AUDIT_URL": audit.url,
    }
    if audit.password is not None:
        environment["RINGFENCE_AUDIT_PASSWORD"] = audit.password.get_secret_value()
    toml = (folder / "ringfence.toml").read_text("utf-8").replace("graph_check = false\n", "")
    (folder / "first.toml").write_text(toml, "utf-8")  # without what came later
    made = subprocess.run(
        [sys.executable, "-c", MAKE_PROJECT, str(folder / "first.toml")],
        check=False, capture_output=True, text=True, env=environment, cwd=folder,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr[-4_000:]
    return json.loads(made.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_project_of_the_first_version_goes_on(first_version, settings, tmp_path):
    made = make_with_first_version(first_version, settings, tmp_path)
    assert (settings.engine.folder / "models" / made["version"]).is_dir()  # as it was laid out then
    with open_workspace(settings) as workspace:
        run_migrations(workspace)
        assert run_verification(workspace).problems == ()
        before = predictions.evaluated_keys(workspace.store, workspace.project)
        assert len(before) == made["evaluated"] > 0
        workspace.graph.run(ARRIVE)
        scored = run_scoring(workspace)
        assert (scored.evaluated, scored.run.model) == (20, made["version"])
        assert json.loads(active_manifest(workspace.store, workspace.project))["classes"]
        workspace.graph.run("MATCH (n:Account) WHERE n.id > 9010 SET n.kind = 'mule'")
        audited = run_audit(workspace)
        assert audited.newly_known == 10
        assert audited.total.known == made["known"] + 10
        after = predictions.evaluated_keys(workspace.store, workspace.project)
        assert set(before) < set(after)
        assert run_verification(workspace).problems == ()
        assert run_training(workspace).version != made["version"]
        assert run_verification(workspace).problems == ()
    period = settings.audit.model_copy(update={"keep_days": 1e-9, "keep_open_days": 1e-9})
    with open_workspace(settings.model_copy(update={"audit": period})) as workspace:
        assert run_prune(workspace).nodes == made["evaluated"] + 20
        assert run_verification(workspace).problems == ()
        assert set(predictions.evaluated_keys(workspace.store, workspace.project)) == set(after)
