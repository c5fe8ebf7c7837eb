"""The version before this one (b008978) and this one decide the same, on one label and on several.

That version's tree is taken out of the repository's history. A project lives through two halves: it
is made and trained, scores a first batch and audits it; then a second batch comes. Lived by the old
code, by the new one, or by the old and then the new one, it must hold the same predictions,
thresholds and coverage. One script drives both versions, through `ringfence.open` alone. What new
models have by default and old ones do not, the new code is asked to do without: `adapt_rule`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from ringfence.connector.store.models import active_manifest
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.seed_key import seed_keys
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from tests.old_versions import open_version
from tests.stores import postgresql_later

VERSION_BEFORE = "b008978"

LIFE = """
import json, os, sys
import ringfence
from neo4j import GraphDatabase

steps = json.loads(sys.argv[2])
auth = os.environ["RINGFENCE_NEO4J_USER"], os.environ["RINGFENCE_NEO4J_PASSWORD"]
project = ringfence.open(sys.argv[1])
with GraphDatabase.driver(project.settings.neo4j.uri, auth=auth) as driver:
    for name, parameters in steps:
        if parameters is None:
            getattr(project, name)()
        else:
            driver.execute_query(name, parameters)
"""

ONE_LABEL = """
[graph]
label = "Account"
key = "id"
features = "features"
class_property = "kind"
[[graph.relationships]]
type = "PAID"
created_at = "created_at"
[model]
network = "GCN"
"""
SEVERAL_LABELS = """
[graph]
class_property = "kind"
[[graph.nodes]]
label = "Account"
key = "id"
role = "classified"
columns = ["balance", "country", "features"]
created_at = "created_at"
[[graph.nodes]]
label = "Bank"
key = "name"
columns = ["size"]
[[graph.relationships]]
from = "Account"
type = "PAID"
to = "Account"
created_at = "created_at"
[[graph.relationships]]
from = "Account"
type = "AT"
to = "Bank"
"""
REST = """
hidden = 8
max_epochs = 30
seed = 4
[conformal]
alpha = [0.1, 0.2]
window_nodes = 500
"""
FORMS = {"one-label": ONE_LABEL + REST, "several-labels": SEVERAL_LABELS + "[model]" + REST}

BANKS = "UNWIND range(0, 6) AS i CREATE (:Bank {name: 'bank ' + i, size: i * i})"
# All accounts of a batch are of one time: those that end a training are then drawn, as they were
# by the version before, and not the latest.
ACCOUNTS = """
UNWIND range($first, $first + $count - 1) AS i
WITH i, i * 37 % 101 / 101.0 AS x, i * 53 % 89 / 89.0 AS y
CREATE (a:Account {id: i, features: [x, y, x * y, x - y], balance: 100 * x + i % 7,
  country: ['de', 'fr', 'it'][i % 3], created_at: datetime()})
WITH a, i, x, y
MATCH (b:Bank {name: 'bank ' + (i % 7)}) CREATE (a)-[:AT]->(b)
WITH a, i, x, y
SET a.kind = CASE WHEN i % 5 < $known THEN CASE WHEN x + i % 7 / 7.0 > 0.8 THEN 'mule'
  WHEN y > 0.5 THEN 'retail' ELSE 'business' END END
WITH a, i
UNWIND [i * 3 % (i + 1), i * 11 % (i + 1), i - 1] AS j
MATCH (other:Account {id: j}) WHERE j <> i
CREATE (a)-[:PAID {created_at: datetime.realtime()}]->(other)
"""
REVEAL = """
MATCH (a:Account) WHERE a.kind IS NULL AND a.id < $until
SET a.kind = CASE WHEN a.features[0] + a.id % 7 / 7.0 > 0.8 THEN 'mule'
  WHEN a.features[1] > 0.5 THEN 'retail' ELSE 'business' END
"""

Step = tuple[str, dict[str, object] | None]
"""A method of the project (without parameters), or a Cypher query with its parameters."""

FIRST_HALF: list[Step] = [
    ("migrate", None),
    (BANKS, {}),
    (ACCOUNTS, {"first": 0, "count": 240, "known": 5}),
    ("train", None),
    (ACCOUNTS, {"first": 240, "count": 60, "known": 0}),
    ("score", None),
    (REVEAL, {"until": 290}),
    ("audit", None),
]
SECOND_HALF: list[Step] = [
    (ACCOUNTS, {"first": 300, "count": 60, "known": 0}),
    ("MATCH (a:Account {id: 7}) SET a.balance = 5, a.features = [1.0, 0.0, 0.0, 1.0]", {}),
    ("MATCH (a:Account) WHERE a.id IN [11, 250] DETACH DELETE a", {}),
    ("score", None),
    (REVEAL, {"until": 330}),
    ("audit", None),
    (ACCOUNTS, {"first": 360, "count": 20, "known": 0}),
    ("score", None),
]

RECORDS = {
    "prediction": "node_key, seq, size, classes, p_values, scores, degree, label",
    "threshold": "*",
    "further_set": "*",
    "joined": "*",
    "coverage": "seq, slice, name, alpha, evaluated, known, covered",
    "member": "node_key, role, class_index",
    "label": "node_key, label, covered, covered_naive, unseen",
}


@pytest.fixture(scope="module")
def version_before():
    """That version's tree, importable as `ringfence` from the folder above it."""
    return open_version(VERSION_BEFORE)


class Life:
    """A project in a folder and an SQL store of its own, on the test's graph."""

    def __init__(self, graph, folder: Path, url: str, form: str, keeps_rules=False) -> None:
        folder.mkdir(parents=True)
        self.keeps_rules = keeps_rules
        self.graph, self.url, self.config = graph, url, folder / "ringfence.toml"
        head = f'project = "life"\n[neo4j]\nuri = "{graph.uri}"\n'
        engine = f'\n[engine]\nfolder = "{folder / "state"}"\n'
        self.config.write_text(head + FORMS[form] + engine, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Where the project's databases are, and their passwords."""
        address = make_url(self.url)
        environment = {
            "RINGFENCE_NEO4J_USER": self.graph.auth[0],
            "RINGFENCE_NEO4J_PASSWORD": self.graph.auth[1],
            "RINGFENCE_AUDIT_URL": address._replace(password=None).render_as_string(),
        }
        if address.password is not None:
            environment["RINGFENCE_AUDIT_PASSWORD"] = str(address.password)
        return environment

    def live(self, code: Path | None, steps: list[Step]) -> None:
        """Take steps in one process, with another version's code where `code` names its tree."""
        environment = os.environ | {"OMP_NUM_THREADS": "1", **self.environment()}
        if code is None:  # a key that is seed 4; the version before has no such variable
            environment["RINGFENCE_SEED_KEY"] = f"{4:032x}"
        else:
            environment["PYTHONPATH"] = str(code)
        if code is None and self.keeps_rules:
            environment["RINGFENCE_CONFORMAL_ADAPT_RULE"] = "then"
        done = subprocess.run(
            [sys.executable, "-c", LIFE, str(self.config), json.dumps(steps)],
            check=False, capture_output=True, text=True, env=environment, cwd=self.config.parent,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def records(self) -> dict[str, list[str]]:
        engine = create_engine(self.url)
        with engine.connect() as connection:
            rows = {
                name: connection.execute(text(f"SELECT {columns} FROM {name}")).mappings().all()
                for name, columns in RECORDS.items()
            }
        engine.dispose()
        return {name: sorted(map(_as_text, table)) for name, table in rows.items()}


def _as_text(row) -> str:
    fields = {name: value for name, value in row.items() if name not in ("model", "version")}
    return json.dumps(fields, sort_keys=True, default=str)


def differing(left: dict[str, list[str]], right: dict[str, list[str]]) -> dict[str, int]:
    """Return, by table, how many rows of either side the other one lacks."""
    counts = {name: len(set(left[name]) ^ set(right[name])) for name in RECORDS}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.long
@pytest.mark.parametrize("form", list(FORMS))
def test_both_versions_decide_the_same(version_before, graph, tmp_path, form):
    lives = {}
    for name, first, second in (
        ("old", version_before, version_before),
        ("upgraded", version_before, None),
        ("new", None, None),
    ):
        graph.run("MATCH (n) DETACH DELETE n")
        url = f"sqlite:///{tmp_path / name}.db"
        life = Life(graph, tmp_path / name, url, form, keeps_rules=name == "new")
        life.live(first, FIRST_HALF)
        life.live(second, [("migrate", None), *SECOND_HALF])
        lives[name] = life.records()
    assert len(lives["old"]["prediction"]) == 140
    assert len(lives["old"]["label"]) > 60
    assert differing(lives["old"], lives["new"]) == {}
    assert differing(lives["old"], lives["upgraded"]) == {}
    changed = {**lives["new"], "prediction": [*lives["new"]["prediction"][1:], "{}"]}
    assert differing(lives["old"], changed) == {"prediction": 2}  # the comparison sees one row


@pytest.mark.slow
@postgresql_later
@pytest.mark.parametrize("form", list(FORMS))
def test_a_project_of_the_version_before_goes_on(version_before, graph, sql_url, tmp_path, form):
    life = Life(graph, tmp_path / "life", sql_url, form)
    life.live(version_before, FIRST_HALF)
    before = life.records()
    with open_workspace(load_settings(life.config, life.environment())) as workspace:
        run_migrations(workspace)
        done = run_verification(workspace)
        assert (done.problems, done.notes) == ((), ())
        manifest = json.loads(active_manifest(workspace.store, "life"))
        assert node_seed(workspace.settings, manifest) == 4  # u is that of [model] seed still
        assert differing(before, life.records()) == {}
        graph.run(ACCOUNTS, first=300, count=60, known=0)
        assert run_scoring(workspace).evaluated == 60
        graph.run(REVEAL, until=330)
        assert run_audit(workspace).newly_known == 40
        assert run_verification(workspace).problems == ()
        assert not seed_keys(workspace.settings).file.exists()  # the next version makes the key
        assert any("seed key was made" in said for said in run_training(workspace).announced)
        assert run_scoring(workspace).evaluated == 0  # by the old version, which needs none
        assert run_verification(workspace).problems == ()
