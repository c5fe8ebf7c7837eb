"""A partition host in a process of Ray: its memory limit, software and network reachability."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray

from ringfence.connector.files import make_private_folder
from ringfence.jobs.engines.partition_host import PartitionHost
from ringfence.jobs.engines.software import own_software

STATUS = Path("/proc/self/status")
CONNECT_SECONDS = 10.0
Listener = tuple[str, int]  # address and port


class RayHost:
    """A partition host as an actor of Ray; its methods are called through `run`."""

    def __init__(
        self, memory: int | None, folder: str, number: int, parts: int, threads: int
    ) -> None:
        if memory is not None:
            limit_memory(memory)
        self.place = (folder, number, parts, threads)
        self.host: PartitionHost | None = None

    def run(self, method: str, *arguments: Any) -> Any:
        """Call a method of the partition host, by its name."""
        if self.host is None:  # here, where an error comes back with its cause
            make_private_folder(Path(self.place[0]))
            self.host = PartitionHost(*self.place)
        return getattr(self.host, method)(*arguments)

    def reach(self, listeners: Sequence[Listener]) -> tuple[str, str]:
        """Return this machine, and the first listener that it can't reach."""
        return self.machine(), find_unreachable(listeners)

    def software(self) -> tuple[str, dict[str, str]]:
        """Return this machine, and the versions that it has."""
        return self.machine(), own_software()

    def pid(self) -> int:
        """Return the id of this process on its machine."""
        return os.getpid()

    def machine(self) -> str:
        """Return the address of this machine."""
        return str(ray.util.get_node_ip_address())

    def node(self) -> str:
        """Return Ray's id of the node that this process belongs to."""
        return str(ray.get_runtime_context().get_node_id())


def limit_memory(limit: int) -> None:
    """Limit this process to so many bytes more than it has now; beyond is a MemoryError.

    Mapped files and shared memory don't count: the system takes them back when it is short.
    """
    lines = STATUS.read_text(encoding="ascii").splitlines() if STATUS.exists() else []
    held = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")]
    if held:
        most = held[0] + limit
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def find_unreachable(listeners: Sequence[Listener]) -> str:
    """Return the first listener that takes no connection from here, and why; empty: all do.

    >>> with socket.create_server(("127.0.0.1", 0)) as server:
    ...     find_unreachable([server.getsockname()])
    ''
    """
    for address, port in listeners:
        try:
            socket.create_connection((address, port), CONNECT_SECONDS).close()
        except OSError as error:
            return f"{address}:{port} ({error.strerror or error})"
    return ""
