"""Workers on hosts with addresses, processes and disks of their own: bits, cuts, refusals.

The hosts are namespaces of one machine: they share its kernel, clock, cores and memory.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.jobs.engines.host_checks import PARTITIONS, WAIT_SECONDS
from tests.jobs.engines.network_hosts import DISK, Host, reason_without_hosts
from tests.jobs.engines.ray_hosts import PORT, open_ray_hosts
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[3]
END_TO_END = "tests/end_to_end/test_engines.py"
NOBODY = f"10.77.0.99:{PORT}"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(reason_without_hosts()), reason=reason_without_hosts()),
]


def parts_on(host):
    """The partitions on a host's own disk."""
    return {place.name for place in host.path(PARTITIONS).glob("*/part-*")}


def make_read_only(host):
    host.run("mkdir", "-p", str(PARTITIONS))
    host.run("mount", "--bind", str(PARTITIONS), str(PARTITIONS))
    host.run("mount", "-o", "remount,ro,bind", str(PARTITIONS))


def change_version(host, package):
    """Let a host see another version of a package; return what must be unmounted after it."""
    (installed,) = Path(pytest.__file__).parents[1].glob(f"{package}-*.dist-info")
    changed = DISK / "changed"
    host.run("cp", "-r", str(installed), str(changed))
    host.run("sed", "-i", "s/^Version: .*/Version: 0.0.1/", str(changed / "METADATA"))
    host.run("mount", "--bind", str(changed), str(installed))
    return str(installed)


def test_a_host_shares_neither_address_nor_disk_and_ends_with_all_its_processes():
    host = Host("alone")
    host.path(DISK / "file").write_text("here")
    assert host.run("cat", str(DISK / "file")) == "here"
    assert not (DISK / "file").exists()
    assert host.run("hostname") == "alone\n"
    assert "eth" not in host.run("ip", "-brief", "link")
    child = host.start("sleep", "1000")
    host.end()
    assert child.wait(timeout=PATIENCE_SECONDS) != 0


def test_passes_over_hosts_with_disks_of_their_own_give_the_bits_of_one_machine(tmp_path):
    with open_ray_hosts(tmp_path, "one", "two", "three") as cluster:
        hosts = cluster.network.hosts
        for network in ("sage", "appnp"):
            first = cluster.run_pass(3, network)
            assert first["differing"] == 0, network
            assert "3 of 3 partitions were filled" in first["sentence"], network
        apart = {hosts[name].address for name in ("one", "two", "three")}
        assert set(first["machines"]) == apart  # not on one host
        kept = [parts_on(hosts[name]) for name in ("one", "two", "three")]
        assert sorted(map(len, kept)) == [1, 1, 1]
        assert len(set.union(*kept)) == 3
        assert not parts_on(cluster.head)

        for name in hosts:
            cluster.network.slow_down(name, "5mbit")
        slow = cluster.run_pass(3, "gcn", nodes=20_000)
        assert (slow["differing"], slow["lost"]) == (0, 0)

        changed = cluster.run_pass(3, "gat", changed=True)
        assert changed["differing"] > 0  # the comparison sees one number of one partition


def test_a_host_that_is_cut_off_costs_a_second_try_or_an_error_in_words(tmp_path):
    with open_ray_hosts(tmp_path, "one", "two", "three") as cluster:
        network, away = cluster.network, []

        def blink(names):
            network.cut(names[0])
            time.sleep(1)
            network.mend(names[0])

        def cut(names):
            away.append(names[0])
            network.cut(names[0])

        assert cluster.run_pass(act=blink)["differing"] == 0
        moved = cluster.run_pass(act=cut)  # the third host has room
        assert (moved["differing"], moved["lost"]) == (0, 1)
        assert "a worker died" in moved["sentence"]
        assert network.hosts[away[0]].address not in moved["machines"]

        stopped = cluster.run_pass(act=cut, for_good=True)  # nobody has
        assert stopped["error"] == "ServerError"
        assert "1 of 2 workers found no room in the Ray cluster within" in stopped["said"]
        assert "it has 2 machines with 1 CPUs" in stopped["said"]
        assert cluster.run_pass(1)["differing"] == 0

        for name in away:
            network.mend(name)
            cluster.join(network.hosts[name])
        again = cluster.run_pass()
        assert (again["differing"], again["lost"]) == (0, 0)


def test_hosts_that_reach_the_head_but_not_one_another_end_a_pass_in_words(tmp_path):
    with open_ray_hosts(tmp_path, "one", "two") as cluster:
        network = cluster.network
        size = {"nodes": 60_000}  # rows that go through the object stores, not within a call
        assert cluster.run_pass(**size)["differing"] == 0
        inside = cluster.run_pass(
            act=lambda names: network.part(*names), for_good=True, network="gcn", **size
        )
        silent = f"workers on Ray gave no answer for {WAIT_SECONDS:g} s"
        assert inside["said"].startswith(silent)
        before = cluster.run_pass(**size)
        assert re.match(r"10.77.0.\d can't reach Ray's object store on 10.77.0.\d:", before["said"])
        network.join("one", "two")
        assert cluster.run_pass(**size)["differing"] == 0


def test_a_cluster_that_cant_be_used_is_told_in_words(tmp_path):
    with open_ray_hosts(tmp_path, "one", "two") as cluster:
        odd = cluster.network.hosts["two"]

        def said(**asked):
            told = cluster.run_pass(**asked)
            assert set(told) == {"error", "said"}
            found, needed, next_step = told["said"].splitlines()
            assert needed.startswith("needed: ")
            assert next_step.startswith("next: ")
            return found

        make_read_only(odd)
        refused = f"a worker on {odd.address} can't write its partition: Read-only file system"
        assert said() == refused
        odd.run("umount", str(PARTITIONS))
        odd.run("mount", "-t", "tmpfs", "empty", str(ROOT / "jobs"))
        assert said().startswith(f"other software on {odd.address}: ModuleNotFoundError")
        odd.run("umount", str(ROOT / "jobs"))
        mounted = change_version(odd, "numba")
        assert said().startswith(f"other software on {odd.address}: numba 0.0.1, and ")
        odd.run("umount", mounted)

        token = f"the Ray cluster at {cluster.address} asks for a token, and "
        assert said(environment={"RAY_AUTH_TOKEN": "0" * 64}) == f"{token}refused this one"
        none = {"RAY_AUTH_TOKEN": "", "RAY_AUTH_MODE": ""}
        assert said(environment=none) == f"{token}RAY_AUTH_TOKEN has none"
        assert said(address=NOBODY).startswith(f"nobody answers at {NOBODY}: ")
        closed = f"{odd.address}:{PORT}"
        assert said(address=closed) == f"nobody answers at {closed}: Connection refused"
        stranger = cluster.network.add_host("stranger")
        node = f"this machine is no node of the Ray cluster at {cluster.address}"
        assert said(on=stranger) == node
        assert cluster.run_pass()["differing"] == 0


@pytest.mark.neo4j
def test_scores_typed_on_a_host_of_the_cluster_are_the_rows_of_one_machine(tmp_path):
    """The end-to-end tests of the engines, with Neo4j, on the head; the workers on other hosts."""
    with open_ray_hosts(tmp_path, "one", "two") as cluster:
        own = {
            "RINGFENCE_ENGINE_ADDRESS": cluster.address,
            "RINGFENCE_ENGINE_WORKER_FOLDER": str(PARTITIONS),
        }
        line = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
        done = subprocess.run(
            cluster.head.line(*line, f"--basetemp={tmp_path / 'rows'}", END_TO_END),
            env=cluster.environment(**own), capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:]
        assert "2 passed" in done.stdout
        for name in ("one", "two"):
            assert len(parts_on(cluster.network.hosts[name])) > 0, name
        assert not parts_on(cluster.head)
