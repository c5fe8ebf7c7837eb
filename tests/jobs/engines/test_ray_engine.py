"""The engine on Ray: the single machine's bits, workers that are killed, nothing left behind."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.engines.lost_disks import METHODS as DISK_METHODS
from tests.jobs.engines.ray_checks import METHODS, NODES, WALK_METHODS, WEIGHTS
from tests.patience import PATIENCE_SECONDS, wait_until

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.slow


def command(folder, check, *more):
    line = [sys.executable, "-W", "ignore", "-m", "tests.jobs.engines.ray_checks"]
    return [*line, str(folder), check, *more]


def told_by(folder, check, *more):
    line = command(folder, check, *more)
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    # the raylets' own lines come last and say nothing of what failed
    lines = [line for line in done.stderr.splitlines() if "(raylet)" not in line]
    assert done.returncode == 0, "\n".join(lines[-60:])
    return json.loads(done.stdout.splitlines()[-1])


def await_end(processes):
    """Wait until none of the processes lives; one to be reaped does not."""
    wait_until(lambda: not any(map(_lives, processes)), f"the end of {processes}")


def _lives(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_cluster_of_two_nodes_gives_the_bits_of_one_machine_and_survives_deaths(tmp_path):
    """One test, since the start of a cluster is most of its cost."""
    told = told_by(tmp_path, "cluster")
    assert list(told["networks"]) == list(WEIGHTS)
    for name, (full, some, computed, again, filled) in told["networks"].items():
        assert (full, some) == (0, 0), name  # numbers that differ, of a full and a later pass
        assert (computed, filled) == (NODES, 0), name
        assert again < NODES, name  # what was kept was used
    for differing, lost, sentence in (*told["deaths"].values(), told["node"]):
        assert differing == 0
        assert lost >= 1
        assert "a worker died, or its files, and the pass began again" in sentence
    assert len(told["started"]) > 4
    await_end(told["started"])


@pytest.mark.long
def test_a_worker_killed_at_any_call_costs_a_second_try_and_no_bit(tmp_path):
    told = told_by(tmp_path, "every_call")
    assert set(told["sage"]) == set(METHODS)
    assert set(told["appnp"]) == set(WALK_METHODS)
    deaths = [*told["sage"].items(), *told["appnp"].items()]
    for method, (differing, lost, sentence) in deaths:
        assert differing == 0, method
        assert lost == 1, method
        assert "the pass began again" in sentence, method


@pytest.mark.long
def test_a_partition_whose_disk_is_lost_costs_a_filling_and_no_bit(tmp_path):
    """Between two runs of one process or two, and inside a run, before each kind of call."""
    told = told_by(tmp_path, "lost_disk")
    assert set(told) > {"between runs", "a file between runs", "between processes", *DISK_METHODS}
    for when, (went, struck, after) in told.items():
        assert went > 0, when
        differing, lost, sentence = struck
        assert differing == 0, when
        assert "1 of 2 partitions were filled from the mirror" in sentence, when
        inside = when in DISK_METHODS and when != "open"
        assert lost == (inside or when == "a mapped file is cut"), when
        assert after[:2] == [0, 0], when
        assert "only what changed was computed again" in after[2], when


@pytest.mark.long
def test_rows_in_transit_that_the_object_store_cant_hold_are_spilled(tmp_path):
    differing, sentence, spilled = told_by(tmp_path, "spilled")
    assert differing == 0
    assert spilled
    assert "died" not in sentence


@pytest.mark.long
@pytest.mark.parametrize("method", ["update", "compute 0", "outputs", "seal"])
def test_a_command_killed_inside_a_pass_leaves_no_process_and_the_next_one_is_right(
    tmp_path, method
):
    line = command(tmp_path, "driver", method)
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        started = json.loads(child.stdout.readline())
        assert len(started) > 4
        assert child.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL
    await_end(started)
    told = told_by(tmp_path, "local")
    differing, sentence = told["pass"]
    assert differing == 0
    assert "2 of 2 partitions were filled" in sentence  # what was left open is not trusted
    assert told["environment"]["RAY_AUTH_MODE"] == "token"
    assert len(told["environment"]["RAY_AUTH_TOKEN"]) == 64
    assert told["open_to_others"] == 0  # neither its sockets nor its lock
    await_end(told["started"])


@pytest.mark.long
def test_a_raylet_killed_beside_the_command_ends_the_pass_in_words(tmp_path):
    told, differing, sentence = told_by(tmp_path, "own_raylet")
    assert "raylet) died" in told
    assert differing == 0
    assert "2 of 2 partitions were filled" in sentence


@pytest.mark.long
def test_a_worker_short_of_memory_and_a_client_without_the_token_are_refused(tmp_path):
    told = told_by(tmp_path, "refusals")
    refused = "a worker needs more than 10 MB of memory"
    ended = "workers of the ray engine died in 3 passes"  # as a compiler without memory
    assert told["memory"].startswith((refused, ended))
    assert told["inside"] == {"same": True, "other": False}
