"""The cluster of Ray that this process joins; Ray's environment was set before the import.

Ray has one message for many reasons why a cluster can't be joined, and retries for a quarter of an
hour if nothing listens: so the address is tried first, and the cause of an error is inspected.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from ringfence.connector.errors import ServerError
from ringfence.jobs.config.engine import EngineSettings

MEGABYTE = 1 << 20
LISTENER_SECONDS = 10.0  # for the head of a cluster to take a connection
REFUSED_TOKEN = ("AuthToken", "Unauthenticated", "AuthenticationError")
NO_NODE_HERE = "No node info found"
OTHER_VERSION = "Version mismatch"


def connect(settings: EngineSettings, scratch: Path | None) -> None:
    """Connect to the cluster of the configuration, or start one whose files are in `scratch`."""
    if ray.is_initialized():
        return
    _print_to_stderr()
    quiet: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
    try:
        if scratch is None:
            require_listener(settings.address)
            ray.init(address=settings.address, **quiet)
            return
        ray.init(
            address="local", num_cpus=settings.partitions, include_dashboard=False,
            object_store_memory=settings.object_store_mb * MEGABYTE,
            _temp_dir=str(scratch), **quiet,
        )  # fmt: skip
    except (RayError, OSError, RuntimeError, ValueError) as error:
        raise explain_refusal(settings, error) from None


def _print_to_stderr() -> None:
    """Make Ray report dead machines on stderr: its default, stdout, has our `--json`."""
    worker: Any = import_module("ray._private.worker")
    plain = getattr(worker, "print_to_stdstream", None)
    if plain is not None:
        worker.print_to_stdstream = lambda told, *more, **named: plain(
            {**told, "is_err": True}, *more, **named
        )


def disconnect() -> None:
    """Leave the cluster; one that was started here ends."""
    ray.shutdown()


def require_listener(address: str) -> None:
    """Raise `ServerError` if nothing accepts connections at host:port; other forms are Ray's."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or "/" in host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), LISTENER_SECONDS).close()
    except OSError as error:
        raise ServerError(
            found=f"nobody answers at {address}: {error.strerror or error}",
            needed="the head of a Ray cluster at [engine] address, which this machine can reach",
            next_step=f"ray start --head --port={port}   (on {host})",
        ) from None


def explain_refusal(settings: EngineSettings, error: Exception) -> ServerError:
    """Return why the cluster was not joined or started, from Ray's error message."""
    if isinstance(error, ServerError):
        return error
    address, said = settings.address, f"{error}\n{error.__cause__ or ''}"
    if address and any(word in said for word in REFUSED_TOKEN):
        given = "refused this one" if "RAY_AUTH_TOKEN" in os.environ else "RAY_AUTH_TOKEN has none"
        return ServerError(
            found=f"the Ray cluster at {address} asks for a token, and {given}",
            needed="the token that the cluster was started with",
            next_step="export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=…   (the same on all machines)",
        )
    if address and NO_NODE_HERE in said:
        return ServerError(
            found=f"this machine is no node of the Ray cluster at {address}",
            needed="a process of Ray on the machine where the command is typed",
            next_step=f"ray start --address={address} --num-cpus=0   (owns no partition)",
        )
    return ServerError(
        found=f"Ray can't be reached or started: {_words_of(error)}",
        needed=f"the cluster at {address}"
        if address
        else f"{settings.object_store_mb} MB of shared memory, and free ports on loopback",
        next_step='check [engine] address and RAY_AUTH_TOKEN, or set kind = "local"',
    )


def _words_of(error: Exception) -> str:
    """The first line; all of them where versions are listed, one on each."""
    if OTHER_VERSION in str(error):
        return " ".join(str(error).split())
    return first_line(error)


def require_own_node() -> None:
    """Raise `ServerError` if Ray's process on this machine is gone: no call would be answered."""
    try:
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
    except (RayError, RuntimeError, OSError):
        alive = set()
    if ray.get_runtime_context().get_node_id() not in alive:
        raise ServerError(
            found="Ray's process on this machine (its raylet) died, so workers can't be reached",
            needed="a raylet that lives through the pass (the system ends it if memory is short)",
            next_step="ringfence score   (goes on from what is on record)",
        )


def describe_room() -> str:
    """Return how many machines and processors the cluster has now, for errors."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    most = sum(node["Resources"].get("CPU", 0) for node in alive)
    free = ray.available_resources().get("CPU", 0)
    return f"{len(alive)} machines with {most:g} CPUs, {free:g} of them free"


def list_stores(nodes: Sequence[str]) -> list[tuple[str, int]]:
    """Return where the object stores of some nodes listen, by their ids, and that of this process.

    By ids and not by addresses: a node that was lost a moment ago counts as alive for a while, and
    another one may have its address.
    """
    used = {ray.get_runtime_context().get_node_id(), *nodes}
    return [
        (str(node["NodeManagerAddress"]), int(node["ObjectManagerPort"]))
        for node in ray.nodes()
        if node["Alive"] and node["NodeID"] in used
    ]


def first_line(error: BaseException) -> str:
    """Return the first line that an error says."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
