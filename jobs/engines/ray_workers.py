"""Partition hosts as actors of Ray; whoever imports this has set Ray's environment before."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import (
    GetTimeoutError,
    ObjectStoreFullError,
    OutOfDiskError,
    RayActorError,
    RayError,
    RayTaskError,
)

from ringfence.connector.errors import FolderError, RingfenceError, ServerError
from ringfence.connector.files import make_private_folder
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines.typed_host import WorkerHost
from ringfence.jobs.engines.workers import WorkerLost, is_short_of_memory

MEGABYTE = 1 << 20
START_SECONDS = 120.0
LOOK_SECONDS = 10.0  # between two looks at whether this machine is still of the cluster
STATUS = Path("/proc/self/status")
GONE = (errno.ENOENT, errno.ESTALE)  # of a worker's files: they are made again from the mirror


def connect(settings: EngineSettings, scratch: Path | None) -> None:
    """Connect to the cluster of the configuration, or start one whose files are in `scratch`."""
    if ray.is_initialized():
        return
    quiet: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
    try:
        if scratch is None:
            ray.init(address=settings.address, **quiet)
            return
        ray.init(
            address="local", num_cpus=settings.partitions, include_dashboard=False,
            object_store_memory=settings.object_store_mb * MEGABYTE,
            _temp_dir=str(scratch), **quiet,
        )  # fmt: skip
    except RayError as error:
        raise RuntimeError(first_line(error)) from None


def disconnect() -> None:
    """Leave the cluster; one that was started here ends."""
    ray.shutdown()


def require_own_node() -> None:
    """Raise `ServerError` where Ray's process on this machine is gone: nobody would answer."""
    try:
        alive = {one["NodeID"] for one in ray.nodes() if one["Alive"]}
    except (RayError, RuntimeError, OSError):
        alive = set()
    if ray.get_runtime_context().get_node_id() not in alive:
        raise ServerError(
            found="Ray's process on this machine (its raylet) died, so workers can't be reached",
            needed="a raylet that lives through the pass (the system ends it if memory is short)",
            next_step="ringfence score   (goes on from what is on record)",
        )


def _wait_for(handles: list[Any]) -> list[Any]:
    while True:
        try:
            return list(ray.get(handles, timeout=LOOK_SECONDS))
        except GetTimeoutError:
            require_own_node()


class RayWorkers:
    """Partition hosts as actors."""

    def __init__(self, settings: EngineSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self._actors = [self._start(number) for number in range(settings.partitions)]

    @property
    def count(self) -> int:
        """How many partitions there are."""
        return len(self._actors)

    @property
    def processes(self) -> list[int]:
        """Process ids of the actors, each on its own machine."""
        return [int(pid) for pid in ray.get([one.pid.remote() for one in self._actors])]

    def call(self, number: int, method: str, *arguments: Any, returns: int = 1) -> list[Any]:
        """Begin a method of one host; return a reference for each of its answers."""
        bound = self._actors[number].run.options(num_returns=returns)
        found = bound.remote(method, *arguments)
        return [found] if returns == 1 else list(found)

    def get(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for answers; raise `WorkerLost` where one will never come."""
        try:
            return _wait_for(list(handles))
        except RayTaskError as error:
            if isinstance(error.cause, RingfenceError):
                raise error.cause from None
            if is_short_of_memory(error.cause, self.settings.worker_memory_mb):
                raise self._too_little_memory() from None
            if isinstance(error.cause, OSError) and error.cause.errno in GONE:
                raise WorkerLost("files of its partition went from its disk") from None
            if isinstance(error.cause, OSError):
                why = error.cause.strerror or error.cause
                raise FolderError(
                    found=f"a worker can't write its partition: {why}",
                    needed="a disk with room for the partition, in [engine] worker_folder",
                    next_step="ringfence partition   (says how much each needs)",
                ) from None
            if isinstance(error.cause, ObjectStoreFullError | OutOfDiskError):
                raise _store_is_full(error.cause) from None
            if _is_loss(error):
                raise WorkerLost(first_line(error)) from None
            raise
        except (ObjectStoreFullError, OutOfDiskError) as error:
            raise _store_is_full(error) from None
        except RayActorError as error:
            raise WorkerLost(first_line(error)) from None
        except RayError as error:  # objects that were lost with their node
            raise WorkerLost(first_line(error)) from None

    def revive(self) -> None:
        """Replace the actors that don't answer."""
        require_own_node()
        for number, actor in enumerate(self._actors):
            try:
                ray.get(actor.pid.remote(), timeout=START_SECONDS)
            except (RayError, GetTimeoutError):
                ray.kill(actor)
                self._actors[number] = self._start(number)

    def close(self) -> None:
        """Let the actors go."""
        for actor in self._actors:
            ray.kill(actor)

    def _too_little_memory(self) -> ServerError:
        most = self.settings.worker_memory_mb
        return ServerError(
            found=f"a worker needs more {f'than {most} MB of ' if most else ''}memory",
            needed="more [engine] worker_memory_mb, or more partitions of a smaller part each",
            next_step="ringfence partition   (says how much each needs)",
        )

    def _start(self, number: int) -> Any:
        settings = self.settings
        most = settings.worker_memory_mb
        memory = {"memory": most * MEGABYTE} if most else {}
        options = ray.remote(_Host).options(
            num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD", **memory
        )
        limit = most * MEGABYTE if most else None
        return options.remote(str(self.folder), number, settings.partitions, 1, limit)


class _Host:
    """A partition host as Ray runs it: one method, so that names are checked in one place."""

    def __init__(
        self, folder: str, number: int, parts: int, threads: int, memory: int | None
    ) -> None:
        if memory is not None:
            limit_memory(memory)
        make_private_folder(Path(folder))
        self.host = WorkerHost(folder, number, parts, threads)

    def run(self, method: str, *arguments: Any) -> Any:
        return getattr(self.host, method)(*arguments)

    def pid(self) -> int:
        return os.getpid()


def limit_memory(limit: int) -> None:
    """Let this process take so many bytes beside what it has now; more is a MemoryError.

    Mapped files and shared memory don't count: the system takes them back when it is short.
    """
    lines = STATUS.read_text(encoding="ascii").splitlines() if STATUS.exists() else []
    held = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")]
    if held:
        most = held[0] + limit
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _store_is_full(error: BaseException) -> ServerError:
    return ServerError(
        found=f"rows in transit don't fit Ray's object store or its disk: {first_line(error)}",
        needed="more [engine] object_store_mb, or free disk where Ray spills",
        next_step="ringfence partition   (says how many bytes each worker receives)",
    )


def _is_loss(error: RayTaskError) -> bool:
    """A task fails with the loss of what another one was to give it."""
    return isinstance(error.cause, RayError)


def first_line(error: BaseException) -> str:
    """Return the first line that an error says."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
