"""What a command imports before it works: no torch to score and audit, nothing heavy for errors."""

import json
import os
import signal
import subprocess
import sys

import pytest

from ringfence.jobs.samples.accounts import sample_toml
from tests.schedulers import count, ends, env, eventually, scheduler
from tests.stores import sqlite

NOTED = """
import atexit, json, os, sys
from pathlib import Path
def note():
    parts = {".".join(m.split(".")[: 2 if m.startswith("scipy") else 1]) for m in sys.modules}
    Path(os.environ["NOTE"]).write_text(json.dumps(sorted(parts)))
atexit.register(note)
"""
MAIN = NOTED + "from ringfence.jobs.cli.app import main; main()"
TORCH = {"torch", "torch_geometric"}
#: numba asks for the version of scipy itself, and for linalg where it compiles a product.
HEAVY_SCIPY = {f"scipy.{part}" for part in ("special", "stats", "sparse", "signal", "optimize")}


def run(folder, environment, *arguments, code=MAIN, exit_code=0):
    """Type a command in a process of its own; return what it said and what it had imported."""
    note = folder / "imported.json"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RINGFENCE_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=clean | {"OMP_NUM_THREADS": "1", "NOTE": str(note)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done, set(json.loads(note.read_text()))


@pytest.mark.slow
@sqlite
def test_score_audit_status_and_schedule_never_import_torch(trained, tmp_path):
    settings = trained.workspace.settings
    environment = env(settings, RINGFENCE_SCHEDULE_SCORE="every 1 seconds")
    done, imported = run(tmp_path, environment, "score", "--json")
    assert json.loads(done.stdout)["evaluated"] > 0
    assert imported & (TORCH | HEAVY_SCIPY | {"pandas", "alembic"}) == set()
    assert {"numba", "scipy"} <= imported
    done, imported = run(tmp_path, environment, "score", "--json")
    assert json.loads(done.stdout)["evaluated"] == 0
    assert imported & (TORCH | {"numba", "pandas", "scipy", "alembic"}) == set()
    for verb in ("audit", "status"):
        _, imported = run(tmp_path, environment, verb)
        assert imported & (TORCH | {"numba", "pandas"}) == set(), verb
    noted = {"NOTE": str(tmp_path / "imported.json")}
    with scheduler(tmp_path, environment | noted, MAIN) as process:
        eventually(lambda: count(process.log, "done") >= 2, process)
        assert ends(process, signal.SIGTERM) == 0
    imported = set(json.loads((tmp_path / "imported.json").read_text()))
    assert "apscheduler" in imported
    assert imported & (TORCH | {"numba", "pandas"}) == set()


@pytest.mark.long
def test_an_import_of_torch_would_be_noticed(tmp_path):
    """The negative control."""
    _, imported = run(tmp_path, {}, code=NOTED + "import ringfence.models.networks.gcn")
    assert imported >= TORCH


@pytest.mark.parametrize(
    ("uri", "password", "says"),
    [
        ("bolt://127.0.0.1:1", None, "no password for neo4j"),
        ("bolt://127.0.0.1:1", "secret-word", "no Neo4j server answers at bolt://127.0.0.1:1"),
        ("bolt://db.example.com", "secret-word", "in plain text"),
        ("ftp://db.example.com", "secret-word", "[neo4j] uri is"),
    ],
)
def test_what_is_wrong_with_a_connection_is_said_before_anything_heavy_is_imported(
    tmp_path, uri, password, says
):
    (tmp_path / "ringfence.toml").write_text(sample_toml(uri, "cold"))
    environment = {"RINGFENCE_NEO4J_PASSWORD": password} if password else {}
    done, imported = run(tmp_path, environment, "score", exit_code=1)
    assert says in done.stderr
    assert "secret-word" not in done.stderr
    assert (
        imported & (TORCH | {"neo4j", "sqlalchemy", "numpy", "numba", "pandas", "alembic"}) == set()
    )
