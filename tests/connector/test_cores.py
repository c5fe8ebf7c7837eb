"""How many processors a process may use, and whether its threads sleep while they wait."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ringfence.connector.cores import quota_cores, usable_cores, usable_threads

LINUX = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is Linux's")


def answer(code, environment=None):
    """Run code in a process of its own, with these variables only."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    script = "from ringfence.connector import cores\n" + code
    ended = subprocess.run(
        [sys.executable, "-c", script], env=clean | (environment or {}), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return ended.stdout.strip()


def groups(folder, membership, files):
    """Write the kernel's files: which groups a process is in, and what they grant."""
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "self").write_text(membership)
    return quota_cores(folder / "cgroup", folder / "self")


@pytest.mark.parametrize(
    ("text", "cores"),
    [("max 100000", None), ("50000 100000", 1), ("150000 100000", 1), ("400000 100000", 4),
     ("", None), ("many 100000", None), ("100000 0", None)],
)  # fmt: skip
def test_a_quota_of_cgroup_2_is_whole_processors_and_at_least_one(tmp_path, text, cores):
    assert groups(tmp_path, "0::/pod/app\n", {"pod/app/cpu.max": text}) == cores


def test_the_tightest_group_around_the_process_counts(tmp_path):
    files = {"pod/app/cpu.max": "max 100000", "pod/cpu.max": "200000 100000"}
    assert groups(tmp_path, "0::/pod/app\n", files) == 2


def test_a_container_that_sees_the_hosts_name_of_its_group_reads_its_own_root(tmp_path):
    assert groups(tmp_path, "0::/../../host/name\n", {"cpu.max": "300000 100000"}) == 3


@pytest.mark.parametrize("folder", ["cpu", "cpu,cpuacct"])
@pytest.mark.parametrize(("quota", "cores"), [("-1", None), ("50000", 1), ("300000", 3)])
def test_a_quota_of_cgroup_1_is_read(tmp_path, folder, quota, cores):
    files = {
        f"{folder}/box/cpu.cfs_quota_us": quota + "\n",
        f"{folder}/box/cpu.cfs_period_us": "100000\n",
    }
    membership = f"4:memory:/box\n3:{folder}:/box\n0::/\n"
    assert groups(tmp_path, membership, files) == cores


def test_without_groups_there_is_no_quota(tmp_path):
    assert quota_cores(tmp_path / "none", tmp_path / "nothing") is None


def test_a_real_group_of_half_a_processor_is_one_thread():
    group = Path("/sys/fs/cgroup/cpu") / f"ringfence-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("50000")
    except OSError:
        pytest.skip("this machine lets nobody make a cgroup with a quota")
    join = f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')\n"
    try:
        assert answer(join + "print(cores.quota_cores(), cores.usable_cores())") == "1 1"
    finally:
        with suppress(OSError):
            group.rmdir()


@LINUX
def test_affinity_limits_the_cores():
    pinned = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    assert answer(pinned + "print(cores.usable_cores(), cores.usable_threads())") == "1 1"


@pytest.mark.parametrize("text", ["0", "-3", "many", "", " ", "1.5"])
def test_a_bad_omp_num_threads_is_as_none(monkeypatch, text):
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert usable_threads() == usable_cores()


@pytest.mark.parametrize("text", ["1", "1,8", " 1 "])
def test_omp_num_threads_limits_threads_and_not_cores(monkeypatch, text):
    before = usable_cores()
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert usable_threads() == 1
    assert usable_cores() == before
    monkeypatch.setenv("OMP_NUM_THREADS", "4000")
    assert usable_threads() == before


def test_threads_wait_passively_where_nobody_said_otherwise():
    show = "cores.wait_passively(); import os; print(os.environ['OMP_WAIT_POLICY'])"
    assert answer(show) == "PASSIVE"
    assert answer(show, {"OMP_WAIT_POLICY": "ACTIVE"}) == "ACTIVE"


def test_threads_that_would_spin_are_one():
    show = "print(cores.usable_openmp_threads() == cores.usable_threads(), "
    show += "cores.usable_openmp_threads())"
    assert answer("cores.wait_passively()\n" + show).startswith("True")
    assert answer("cores.wait_passively()\n" + show, {"OMP_WAIT_POLICY": "active"}).endswith("1")
    # a library that was loaded before has read no policy, and spins
    loaded = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
    assert answer(loaded + "cores.wait_passively()\n" + show).endswith("1")
