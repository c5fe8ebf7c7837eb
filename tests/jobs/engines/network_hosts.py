"""Hosts on one machine: each has a network, processes, a name and disks of its own.

A host is a process in Linux namespaces that no name outlives: when it ends, or whoever started it,
the kernel ends every process of the host and removes its interfaces and disks. The machine's own
network is not touched: the hosts' addresses and the bridge between them exist in namespaces alone.
Hosts share a kernel, a clock, cores and memory; they are not several machines.
"""

import os
import shutil
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path

NAMESPACES = ("--net", "--mount", "--pid", "--uts", "--ipc")
NETWORK_COMMANDS = ("ip", "tc")  # they name another host by its process, as the machine counts
NEEDED = (*NETWORK_COMMANDS, "unshare", "nsenter", "mount")
BRIDGE, CARD = "br0", "eth0"
GATEWAY = "10.77.0.1"  # it forwards nothing
DISK = Path("/mnt")  # each host has one of its own there, and one at SHARED_MEMORY
SHARED_MEMORY = Path("/dev/shm")


def reason_without_hosts():
    """Why no host can be made here; empty where one can."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"hosts need the commands {', '.join(missing)} (packages iproute2, util-linux)"
    tried = subprocess.run(
        ["unshare", *NAMESPACES, "--fork", "ip", "link", "add", BRIDGE, "type", "bridge"],
        capture_output=True, text=True,
    )  # fmt: skip
    return f"namespaces can't be made here: {tried.stderr.strip()}" if tried.returncode else ""


class Host:
    """A process in namespaces of its own, and what runs beside it."""

    def __init__(self, name, address=""):
        self.name, self.address, self.children = name, address, []
        # it waits for the end of its input: where the tests are killed, it ends by itself
        self.keeper = subprocess.Popen(
            ["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", "sh", "-c",
             f"echo ready; hostname {name}; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.keeper.stdout.readline() == "ready\n"
        children = Path(f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children")
        (self.first_process,) = map(int, children.read_text().split())
        self.run("ip", "link", "set", "lo", "up")
        for place in (DISK, SHARED_MEMORY):
            self.run("mount", "-t", "tmpfs", "-o", "size=2g", name, str(place))

    def line(self, *command):
        """A command as it is typed on this host."""
        inside = NAMESPACES if command[0] not in NETWORK_COMMANDS else NAMESPACES[:1]
        target = ("--target", str(self.first_process), f"--wdns={Path.cwd()}")
        return ["nsenter", *inside, *target, *command]

    def run(self, *command, **options):
        """Run a command to its end; return what it prints."""
        done = subprocess.run(self.line(*command), capture_output=True, text=True, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, *command, **options):
        """Start a command; it ends with the host at the latest."""
        self.children.append(subprocess.Popen(self.line(*command), **options))
        return self.children[-1]

    def path(self, place):
        """A file of this host as other processes of the machine see it."""
        return Path(f"/proc/{self.first_process}/root") / Path(place).relative_to("/")

    def end(self):
        """End every process of the host: the kernel does when its first one ends."""
        if self.keeper.poll() is None:
            os.kill(self.first_process, signal.SIGKILL)
        for process in (self.keeper, *self.children):
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


class Network:
    """A bridge, and hosts with addresses 10.77.0.2, 10.77.0.3, … joined to it."""

    def __init__(self, stack):
        self.stack, self.hosts = stack, {}
        self.switch = self._make("switch")
        self.switch.run("ip", "link", "add", BRIDGE, "type", "bridge")
        self.switch.run("ip", "address", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        self.switch.run("ip", "link", "set", BRIDGE, "up")

    def add_host(self, name):
        """Add a host, with a cable between it and the bridge."""
        host = self._make(name, f"10.77.0.{len(self.hosts) + 2}")
        peer = ("peer", "name", CARD, "netns", str(host.first_process))
        self.switch.run("ip", "link", "add", name, "type", "veth", *peer)
        self.switch.run("ip", "link", "set", name, "master", BRIDGE, "up")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", CARD)
        host.run("ip", "link", "set", CARD, "up")
        host.run("ip", "route", "add", "default", "via", GATEWAY)  # Ray finds its address by it
        self.hosts[name] = host
        return host

    def cut(self, name):
        """Take a host's cable out; nothing tells the others."""
        self.switch.run("ip", "link", "set", name, "down")

    def mend(self, name):
        """Put a host's cable in again."""
        self.switch.run("ip", "link", "set", name, "up")

    def part(self, *names):
        """Let these hosts reach all others, but not one another, as behind a firewall."""
        self._isolate(names, "on")

    def join(self, *names):
        """Let hosts reach one another again."""
        self._isolate(names, "off")

    def _isolate(self, names, state):
        for name in names:
            option = ("type", "bridge_slave", "isolated", state)
            self.switch.run("ip", "link", "set", "dev", name, *option)

    def slow_down(self, name, rate):
        """Let a host's cable carry so much in each direction, as tc says it: 20mbit."""
        limit = ("root", "tbf", "rate", rate, "burst", "64kb", "latency", "200ms")
        self.switch.run("tc", "qdisc", "replace", "dev", name, *limit)
        self.hosts[name].run("tc", "qdisc", "replace", "dev", CARD, *limit)

    def _make(self, name, address=""):
        host = Host(name, address)
        self.stack.callback(host.end)
        return host


@contextmanager
def open_network():
    """A network without hosts; all that it has ends with the block."""
    with ExitStack() as stack:
        yield Network(stack)
