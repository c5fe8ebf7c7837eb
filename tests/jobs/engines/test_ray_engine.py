"""The engine on Ray: the single machine's bits, workers that are killed, nothing left behind."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.jobs.engines.ray_checks import NODES, WEIGHTS

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.slow


def command(folder, *more):
    return [sys.executable, "-W", "ignore", "-m", "tests.jobs.engines.ray_checks", folder, *more]


def left_of(processes, seconds=40):
    """Those of the processes that still live after a while; one to be reaped does not."""
    for _ in range(seconds * 4):
        left = [one for one in processes if _lives(one)]
        if not left:
            break
        time.sleep(0.25)
    return left


def _lives(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_cluster_gives_the_bits_of_one_machine_survives_a_death_and_leaves_nothing(tmp_path):
    """One test, since the start of a cluster is most of its cost."""
    line = command(str(tmp_path))
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert list(told["networks"]) == list(WEIGHTS)
    for name, (full, some, computed, again, filled) in told["networks"].items():
        assert (full, some) == (0, 0), name  # numbers that differ, of a full and a later pass
        assert (computed, filled) == (NODES, 0), name
        assert again < NODES, name  # what was kept was used
    lost, differing, filled, computed = told["death"]
    assert (lost, differing, filled) == (True, 0, 1)
    assert 0 < computed < NODES  # the other worker kept what it had
    assert len(told["started"]) > 4
    assert left_of(told["started"]) == []


@pytest.mark.long
def test_a_command_that_is_killed_leaves_no_process_of_ray(tmp_path):
    line = command(str(tmp_path), "wait")
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        started = json.loads(child.stdout.readline())
        assert len(started) > 4
        assert all(map(_lives, started))
        child.kill()
    assert left_of(started) == []
