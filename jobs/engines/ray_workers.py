"""Partition hosts as actors of Ray; whoever imports this has set Ray's environment before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from ringfence.connector.errors import FolderError, RingfenceError
from ringfence.connector.files import make_private_folder
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines.partition_host import PartitionHost
from ringfence.jobs.engines.workers import WorkerLost

MEGABYTE = 1 << 20
START_SECONDS = 120.0


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
            return list(ray.get(list(handles)))
        except RayTaskError as error:
            if isinstance(error.cause, RingfenceError):
                raise error.cause from None
            if isinstance(error.cause, OSError):
                raise FolderError(
                    found=f"a worker can't write its partition: {error.cause.strerror}",
                    needed="a disk with room for the partition, in [engine] worker_folder",
                    next_step="ringfence partition   (says how much each needs)",
                ) from None
            if _is_loss(error):
                raise WorkerLost(first_line(error)) from None
            raise
        except RayActorError as error:
            raise WorkerLost(first_line(error)) from None
        except RayError as error:  # objects that were lost with their node
            raise WorkerLost(first_line(error)) from None

    def revive(self) -> None:
        """Replace the actors that don't answer."""
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

    def _start(self, number: int) -> Any:
        settings = self.settings
        most = settings.worker_memory_mb
        memory = {"memory": most * MEGABYTE} if most else {}
        options = ray.remote(_Host).options(
            num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD", **memory
        )
        return options.remote(str(self.folder), number, settings.partitions, 1)


class _Host:
    """A partition host as Ray runs it: one method, so that names are checked in one place."""

    def __init__(self, folder: str, number: int, parts: int, threads: int) -> None:
        make_private_folder(Path(folder))
        self.host = PartitionHost(folder, number, parts, threads)

    def run(self, method: str, *arguments: Any) -> Any:
        return getattr(self.host, method)(*arguments)

    def pid(self) -> int:
        return os.getpid()


def _is_loss(error: RayTaskError) -> bool:
    """A task fails with the loss of what another one was to give it."""
    return isinstance(error.cause, RayError)


def first_line(error: BaseException) -> str:
    """Return the first line that an error says."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
