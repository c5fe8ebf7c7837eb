"""Odd graphs of several labels: each has a clear word or a defined meaning, and nothing is lost."""

import json

import pytest

from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training

pytestmark = pytest.mark.statistics  # minutes on a busy machine: the lane of long tests

CONFIG = """
project = "odd"
[neo4j]
uri = "{uri}"
[graph]
class_property = "kind"
[[graph.nodes]]
label = "Thing"
key = "id"
role = "classified"
columns = ["long", "size", "code"]
[[graph.nodes]]
label = "Hub"
key = "id"
columns = ["name"]
[[graph.nodes]]
label = "Empty"
key = "id"
columns = ["nothing"]
[[graph.relationships]]
from = "Thing"
type = "AT"
to = "Hub"
[[graph.relationships]]
from = "Thing"
type = "NEVER"
to = "Empty"
[graph.columns.Thing]
code = "category"
[model]
hidden = 4
max_epochs = 2
[engine]
folder = "{folder}"
"""
NUMBERS, CLASSES, THINGS = 10_000, 300, 900
LOAD = """
MERGE (h:Hub {id: 1}) SET h.name = 'hub'
WITH h UNWIND range($first, $first + $count - 1) AS i
CREATE (t:Thing {id: i, size: i * 0.5, code: 'code ' + i,
  kind: CASE WHEN $known THEN 'class ' + (i % $classes) END})
CREATE (t)-[:AT]->(h)
"""


@pytest.fixture
def workspace(graph, tmp_path, monkeypatch):
    path = tmp_path / "odd.toml"
    path.write_text(CONFIG.format(uri=graph.uri, folder=tmp_path / "state"))
    environment = {
        "RINGFENCE_NEO4J_USER": graph.auth[0],
        "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
        "RINGFENCE_AUDIT_URL": f"sqlite:///{tmp_path}/odd.db",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with open_workspace(load_settings(path, environment)) as opened:
        graph.run(LOAD, first=0, count=THINGS, known=True, classes=CLASSES)
        graph.run(
            "MATCH (t:Thing) WHERE t.id % 20 = 0 "
            "SET t.long = [x IN range(1, $n) | toFloat(x % 7 + t.id % 3)]",
            n=NUMBERS,
        )
        run_migrations(opened)
        yield opened, path


def test_long_lists_many_classes_an_empty_label_and_a_hub(graph, workspace):
    opened, path = workspace
    findings = run_doctor(path)
    text = "\n".join(one.text for one in findings)
    assert "no node carries the context label Empty" in text
    assert "300 classes" in text
    assert "training needs about" in text
    trained = run_training(opened)
    assert len(trained.classes) == CLASSES
    manifest = json.loads(next(opened.models.glob("*/manifest.json")).read_text())
    kinds = {one["name"]: one for one in manifest["typed"]["encoders"][0]["columns"]}
    assert kinds["long"]["kind"] == "vector"
    assert len(kinds["code"]["facts"]["keys"]) <= 64  # of 900 values, most are rare

    graph.run(LOAD, first=THINGS, count=20, known=False, classes=CLASSES)
    assert run_scoring(opened).evaluated == 20

    # a column whose type changes after training is missing, and stops nobody
    graph.run(LOAD, first=THINGS + 20, count=5, known=False, classes=CLASSES)
    graph.run("MATCH (t:Thing) WHERE t.id >= 920 SET t.size = 'large', t.long = ['a', 'b']")
    report = run_scoring(opened)
    assert report.evaluated == 5
    assert report.quarantined == 0

    # a relationship type between other labels than configured is said
    graph.run("MATCH (h:Hub) CREATE (h)-[:NEVER]->(h)")
    found = [one for one in run_doctor(path) if "NEVER" in one.text and one.level != "ok"]
    assert found
    assert all(one.fix for one in found)

    # a context label vanishes
    graph.run("MATCH (h:Hub) DETACH DELETE h")
    graph.run("CREATE (:Thing {id: 990, size: 1.0})")
    report = run_scoring(opened)
    assert report.evaluated == 1
    assert any("no node carries the label Hub" in note for note in report.run.notes)

    # the classified label vanishes
    graph.run("MATCH (t:Thing) DETACH DELETE t")
    report = run_scoring(opened)
    assert report.evaluated == 0
    (found,) = [one for one in run_doctor(path) if "has no :Thing nodes" in one.text]
    assert found.level == "error"
