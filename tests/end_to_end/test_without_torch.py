"""A project is scored, audited and checked where torch and scikit-learn can't be imported.

One process types all verbs, with an import hook in place of an environment without these packages;
`make test-wheel` does the same in a real one.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.schedulers import env
from tests.stores import sqlite

TYPE_VERBS = """
import contextlib, importlib.abc, io, json, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %(absent)r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from ringfence.jobs.cli.app import main
said = {}
for verb in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["ringfence", *verb.split()]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try: main()
        except SystemExit as end: code = end.code or 0
    said[verb] = [code, out.getvalue(), err.getvalue()]
print(json.dumps(said))
"""
TRAINING = ("torch", "torch_geometric", "sklearn")
REFUSED = ("train", "models compare 2", "demo --no-serve", "reproduce --quick")
VERBS = ("score --json", "audit", "status", "verify --json", "doctor --json", *REFUSED)


def type_verbs(folder, environment, verbs, absent=TRAINING):
    """Type verbs in one process that lacks packages; return code, output and errors of each."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RINGFENCE_")}
    done = subprocess.run(
        [sys.executable, "-c", TYPE_VERBS % {"absent": absent}, json.dumps(verbs)],
        cwd=folder, env=clean | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@sqlite
def test_a_project_is_scored_and_audited_without_torch(trained, tmp_path):
    said = type_verbs(tmp_path, env(trained.workspace.settings), VERBS)
    for verb in ("score --json", "audit", "status", "verify --json"):
        assert said[verb][0] == 0, said[verb]
    assert json.loads(said["score --json"][1])["evaluated"] > 0
    assert "does not train: scikit-learn, torch and torch-geometric" in said["doctor --json"][1]
    for verb in REFUSED:
        code, _, errors = said[verb]
        assert code == 1, verb
        assert "not installed" in errors, verb
        assert "pip install 'ringfence[train]'" in errors, verb
    assert not (tmp_path / ".ringfence/demo").exists()
    assert not (tmp_path / "docs").exists()


@pytest.mark.slow
@sqlite
def test_a_scheduled_training_without_torch_is_refused_at_the_start(trained, tmp_path):
    environment = env(trained.workspace.settings, RINGFENCE_SCHEDULE_RETRAIN="every 1 days")
    said = type_verbs(tmp_path, environment, ("schedule --check", "doctor"))
    code, _, errors = said["schedule --check"]
    assert code == 1
    assert "for the job retrain of [schedule]" in errors
    assert "pip install 'ringfence[train]'" in errors
    code, found, _ = said["doctor"]
    assert code == 1
    assert "scikit-learn, torch and torch-geometric are not installed" in " ".join(found.split())
    said = type_verbs(tmp_path, environment, ("schedule --check",), absent=())  # the control
    assert said["schedule --check"][0] == 0
