"""The benchmark runs, checks its own results, and writes what it prints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
def test_the_benchmark_runs_on_a_small_graph(tmp_path):
    command = [sys.executable, "-m", "benchmarks.conformal", "--nodes", "3000"]
    command += ["--calibration", "400", "--rounds", "1", "--json", str(tmp_path / "out.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| sets | ringfence, aps + prediction_sets |" in done.stdout
    assert "| a run | outputs to sets, DAPS, bands of degree, blocks |" in done.stdout
    assert "MAPIE" in done.stdout
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["nodes"] == 3000
    assert all(row["seconds"] for row in found["rows"])
