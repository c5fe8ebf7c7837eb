"""A cluster of Ray over hosts of their own, and passes that are typed on one of them."""

import json
import os
import secrets
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from tests.jobs.engines.network_hosts import DISK, open_network
from tests.jobs.engines.ray_checks import QUICK_DEATHS
from tests.patience import PATIENCE_SECONDS

RAY = str(Path(sys.executable).with_name("ray"))
PORT = 6379
TRIES = 5  # a raylet gives up where its agent is not up within seconds, as on a busy machine
AWAIT_NODE = """
import ray, sys, time
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
for _ in range(60):
    if any(node["Alive"] and node["NodeManagerAddress"] == sys.argv[2] for node in ray.nodes()):
        sys.exit(0)
    time.sleep(0.5)
sys.exit(1)
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

    def run_pass(self, partitions=2, network="sage", on=None, act=None, **asked):
        """What a pass says that is typed on a host (the head); `act` gets the workers' hosts."""
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
            return self._talk(child, act)

    def _talk(self, child, act):
        if act is not None:
            before = json.loads(child.stdout.readline())
            act([self.name_of(address) for address in before["machines"]])
        said, _ = child.communicate("\n" if act else None)
        (told,) = said.splitlines()  # and nothing of Ray's, which would spoil --json
        return json.loads(told)

    def _start(self, host, *options):
        """Start Ray on a host, and wait until the host is of the cluster."""
        fixed = ("--block", "--disable-usage-stats", "--object-store-memory=80000000")
        line = (RAY, "start", *fixed, f"--node-ip-address={host.address}", *options)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        for _ in range(TRIES):
            host.start(*line, env=self.environment(), stderr=subprocess.DEVNULL, **quiet)
            if self._is_joined(host):
                return
            host.run("sh", "-c", f"{RAY} stop --force || true")
        raise AssertionError(f"Ray did not start on {host.name}")

    def _is_joined(self, host):
        code = (sys.executable, "-W", "ignore", "-c", AWAIT_NODE, self.address, host.address)
        line = self.head.line(*code)
        return subprocess.run(line, env=self.environment(), capture_output=True).returncode == 0


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
