"""Two projects are compared row by row (`benchmarks.same_results`); what differs is named."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.connector.store.engine import open_store
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.samples.audit_store import Plan, fill_store

ROOT = Path(__file__).resolve().parents[1]


def make_project(folder, seed=7):
    """A store of two runs in a folder of its own."""
    settings = Settings.model_validate(
        {
            "project": "payments",
            "graph": {
                "label": "Account",
                "key": "id",
                "features": "features",
                "class_property": "kind",
                "created_at": "created_at",
            },
            "audit": {"groups": ["region"]},
            "engine": {"folder": folder},
        }
    )
    store = open_store(f"sqlite:///{folder}/audit.db")
    fill_store(store, settings, Plan(runs=2, per_run=30, promise="class", seed=seed))
    store.close()
    return folder


def compare(before, after):
    command = [sys.executable, "-m", "benchmarks.same_results", str(before), str(after), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two equal projects, the second made a little later."""
    return [make_project(tmp_path_factory.mktemp(name)) for name in ("before", "after")]


@pytest.fixture
def two(made, tmp_path):
    """The equal projects; the second may be changed."""
    return made[0], shutil.copytree(made[1], tmp_path / "after")


def change(folder, statement):
    with sqlite3.connect(folder / "audit.db") as connection:
        connection.execute(statement)


def test_equal_projects_made_at_different_times_are_equal(two):
    code, answer = compare(*two)
    assert (code, answer["differences"]) == (0, [])
    assert answer["compared"]["prediction"] == 60
    assert {"run", "threshold", "coverage", "grouping", "member"} <= answer["compared"].keys()


def test_one_changed_p_value_is_named(two):
    change(
        two[1],
        "UPDATE prediction SET p_values = replace(p_values, '0.', '0.0000001') "
        "WHERE node_key = (SELECT min(node_key) FROM prediction)",
    )
    code, answer = compare(*two)
    assert code == 1
    (line,) = answer["differences"]
    assert line.startswith("prediction.p_values: differs in 1 of 60 rows, such as ('")
    assert "before" in line
    assert "0.0000001" in line


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE threshold SET threshold = threshold * 1.0000001 WHERE seq = 2", "threshold.thre"),
        ("UPDATE run SET level = 0.09 WHERE seq = 1", "run.level"),
        ("UPDATE coverage SET covered = covered + 1 WHERE slice = 'total'", "coverage.covered"),
        ("UPDATE run SET watch = '{\"mean_p\": 0.5}'", "run.watch"),
        ("DELETE FROM grouping WHERE node_key = (SELECT min(node_key) FROM grouping)", "grouping"),
    ],
)
def test_every_kind_of_difference_is_named(two, statement, named):
    change(two[1], statement)
    code, answer = compare(*two)
    assert code == 1
    assert [line for line in answer["differences"] if line.startswith(named)]


def test_sentences_and_times_are_no_difference(two):
    change(two[1], "UPDATE coverage SET words = 'said otherwise', audited_ns = 5")
    for project, time in zip(two, (5, 6), strict=True):
        change(project, f'UPDATE run SET watch = \'{{"a": {{"mark_ns": {time}}}}}\'')
    assert compare(*two)[0] == 0


def test_another_seed_differs(two, tmp_path):
    code, answer = compare(two[0], make_project(tmp_path / "third", seed=8))
    assert code == 1
    assert any("p_values" in line for line in answer["differences"])
