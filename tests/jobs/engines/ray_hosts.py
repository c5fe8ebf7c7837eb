"""A cluster of Ray over hosts of their own, and passes that are typed on one of them."""

import json
import os
import secrets
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from tests.jobs.engines.host_checks import FOR_GOOD
from tests.jobs.engines.network_hosts import DISK, open_network
from tests.jobs.engines.ray_checks import QUICK_DEATHS
from tests.patience import PATIENCE_SECONDS, wait_until

RAY = str(Path(sys.executable).with_name("ray"))
PORT = 6379
TRIES = 5  # a raylet gives up where its agent is not up within seconds, as on a busy machine
AWAIT_NODE = """
import ray, sys, time
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
while not any(node["Alive"] and node["NodeManagerAddress"] == sys.argv[2] for node in ray.nodes()):
    time.sleep(0.5)
"""


class RayHosts:
    """A head that owns no partition, and hosts with room for one worker each."""

    def __init__(self, network, folder, names):
        self.network, self.folder = network, folder
        self.token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.head = network.add_host("head")
        self.address = f"{self.head.address}:{PORT}"
        first = ("--head", f"--port={PORT}", f"--temp-dir={DISK}/ray", "--include-dashboard=false")
        self._start(self.head, "--num-cpus=0", *first)
        for name in names:
            self.join(network.add_host(name))

    def environment(self, **more):
        """What commands of this cluster are typed with; an empty value takes a name away."""
        named = os.environ | QUICK_DEATHS | {"RAY_USAGE_STATS_ENABLED": "0"} | self.token | more
        return {name: value for name, value in named.items() if value}

    def join(self, host):
        """Start Ray on a host; its files are on its own disk, where the head's are on the head."""
        self._start(host, "--num-cpus=1", f"--address={self.address}")

    def name_of(self, address):
        """The host that has an address."""
        return next(host.name for host in self.network.hosts.values() if host.address == address)

    def run_pass(self, partitions=2, network="sage", on=None, act=None, for_good=False, **asked):
        """What a pass says that is typed on a host (the head); `act` gets the workers' hosts.

        `for_good`: the pass need not wait long for what `act` took.
        """
        asked = {
            "folder": str(self.folder), "address": self.address, "nodes": 2_000,
            "partitions": partitions, "network": network, **asked,
            "strikes_at": "compute 0" if act else None,
        }  # fmt: skip
        more = asked.pop("environment", {})
        line = (sys.executable, "-W", "ignore", "-m", "tests.jobs.engines.host_checks")
        child = (on or self.head).start(
            *line, json.dumps(asked), env=self.environment(**more), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with _end_later(on or self.head, PATIENCE_SECONDS):
            return self._talk(child, act, FOR_GOOD if for_good else "\n")

    def _talk(self, child, act, line):
        if act is not None:
            before = json.loads(child.stdout.readline())
            act([self.name_of(address) for address in before["machines"]])
        said, _ = child.communicate(line if act else None)
        (told,) = said.splitlines()  # and nothing of Ray's, which would spoil --json
        return json.loads(told)

    def _start(self, host, *options):
        """Start Ray on a host, and wait until the host is of the cluster."""
        fixed = ("--block", "--disable-usage-stats", "--object-store-memory=80000000")
        line = (RAY, "start", *fixed, f"--node-ip-address={host.address}", *options)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        for _ in range(TRIES):
            raylet = host.start(*line, env=self.environment(), stderr=subprocess.DEVNULL, **quiet)
            if self._is_joined(host, raylet):
                return
            host.run("sh", "-c", f"{RAY} stop --force || true")
        raise AssertionError(f"Ray did not start on {host.name}")

    def _is_joined(self, host, raylet):
        """Wait until a host is of the cluster, or what was to bring it there has ended."""
        code = (sys.executable, "-W", "ignore", "-c", AWAIT_NODE, self.address, host.address)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        asking = self.head.start(*code, env=self.environment(), **quiet)
        wait_until(lambda: any(child.poll() is not None for child in (asking, raylet)), host.name)
        if asking.poll() is None:
            asking.kill()
        return asking.wait(PATIENCE_SECONDS) == 0


@contextmanager
def _end_later(host, seconds):
    """End a host, and so what hangs on it, after a time that nothing should take."""
    timer = threading.Timer(seconds, host.end)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def open_ray_hosts(folder, *names):
    """A cluster over a head and hosts of these names; nothing is left of it after the block."""
    with open_network() as network:
        yield RayHosts(network, folder, names)
