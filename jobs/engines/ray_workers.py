"""Partition hosts as actors of Ray; set Ray's environment before importing this module."""

from __future__ import annotations

import errno
import re
import time
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
from ringfence.jobs.config.engine import EngineSettings
from ringfence.jobs.engines.ray_cluster import (
    MEGABYTE,
    describe_room,
    first_line,
    list_stores,
    require_own_node,
)
from ringfence.jobs.engines.ray_host import RayHost
from ringfence.jobs.engines.software import other_software, require_same_software
from ringfence.jobs.engines.workers import WorkerLost, is_short_of_memory

START_SECONDS = 300.0  # for a cluster to find room for a worker, or to make some
ANSWER_SECONDS = 120.0  # of a worker that may be gone; Ray misses a machine after about 65
SILENT_SECONDS = 3_600.0  # without an answer of workers that live: their network is at fault
LOOK_SECONDS = 10.0  # between two looks at whether this machine is still of the cluster
MACHINE = re.compile(r"\bip=([^,)]+)")  # in what Ray says of a failed call
REACH = "a network in which every machine of the cluster reaches every other, on all ports of Ray"
GONE = (errno.ENOENT, errno.ESTALE)  # of a worker's files: they are made again from the mirror


def _wait_for(handles: list[Any]) -> list[Any]:
    until = time.monotonic() + SILENT_SECONDS
    while time.monotonic() < until:
        try:
            return list(ray.get(handles, timeout=LOOK_SECONDS))
        except GetTimeoutError:
            require_own_node()
    raise ServerError(
        found=f"workers on Ray gave no answer for {SILENT_SECONDS:g} s, and none of them died",
        needed=REACH,
        next_step="ringfence score   (tries which machine can't reach which, and begins anew)",
    )


class RayWorkers:
    """Partition hosts as actors."""

    def __init__(self, settings: EngineSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self._actors: list[Any] = [None] * settings.partitions
        self._start(range(settings.partitions))

    @property
    def count(self) -> int:
        """How many partitions there are."""
        return len(self._actors)

    @property
    def processes(self) -> list[int]:
        """Process ids of the actors, each on its own machine."""
        return [int(pid) for pid in ray.get([actor.pid.remote() for actor in self._actors])]

    @property
    def machines(self) -> list[str]:
        """Addresses of the machines where the actors are."""
        return [str(name) for name in ray.get([actor.machine.remote() for actor in self._actors])]

    def call(self, number: int, method: str, *arguments: Any, returns: int = 1) -> list[Any]:
        """Begin a method of one host; return a reference for each of its answers."""
        bound = self._actors[number].run.options(num_returns=returns)
        answers = bound.remote(method, *arguments)
        return [answers] if returns == 1 else list(answers)

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
                    found=f"a worker on {machine_of(error)} can't write its partition: {why}",
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
        asked = [actor.pid.remote() for actor in self._actors]
        ray.wait(asked, num_returns=len(asked), timeout=ANSWER_SECONDS)
        gone = [number for number, answer in enumerate(asked) if not _is_answered(answer)]
        self._end(gone)
        self._start(gone)

    def close(self) -> None:
        """Stop the actors."""
        self._end(range(self.count))

    def _end(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            ray.kill(self._actors[number])

    def _too_little_memory(self) -> ServerError:
        most = self.settings.worker_memory_mb
        return ServerError(
            found=f"a worker needs more {f'than {most} MB of ' if most else ''}memory",
            needed="more [engine] worker_memory_mb, or more partitions of a smaller part each",
            next_step="ringfence partition   (says how much each needs)",
        )

    def _start(self, numbers: Sequence[int]) -> None:
        """Start actors; refuse one whose software is another."""
        most = self.settings.worker_memory_mb
        memory = {"memory": most * MEGABYTE} if most else {}
        options = ray.remote(RayHost).options(
            num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD", **memory
        )
        limit = most * MEGABYTE if most else None
        for number in numbers:
            place = (str(self.folder), number, self.settings.partitions, 1)
            self._actors[number] = options.remote(limit, *place)
        try:
            self._require_started([self._actors[number].software.remote() for number in numbers])
            self._require_reach()
        except RingfenceError:  # what still waits for room would be waited for by the next pass
            self._end(numbers)
            raise

    def _require_started(self, asked: list[Any]) -> None:
        """Wait for room in the cluster; a worker that dies meanwhile is found by the pass."""
        if asked:
            _, waiting = ray.wait(asked, num_returns=len(asked), timeout=START_SECONDS)
            if waiting:
                raise self._too_little_room(len(waiting))
        for answer in asked:
            try:
                require_same_software(*ray.get(answer))
            except RayActorError as error:
                if error.actor_init_failed:
                    raise other_software(machine_of(error), last_line(error)) from None
            except RayTaskError as error:  # a version that has no such method
                raise other_software(machine_of(error), last_line(error)) from None

    def _require_reach(self) -> None:
        """Check that workers reach each other: a firewall between two would make a pass hang."""
        try:
            listeners = list_stores(ray.get([actor.node.remote() for actor in self._actors]))
            reached = ray.get([actor.reach.remote(listeners) for actor in self._actors])
        except RayError:  # a worker died: the pass finds it
            return
        for machine, other in reached:
            if other:
                raise ServerError(
                    found=f"{machine} can't reach Ray's object store on {other}",
                    needed=REACH,
                    next_step="open the ports between the machines (ray start --help names them)",
                )

    def _too_little_room(self, waiting: int) -> ServerError:
        most = self.settings.worker_memory_mb
        return ServerError(
            found=f"{waiting} of {self.count} workers found no room in the Ray cluster within "
            f"{START_SECONDS:g} s; it has {describe_room()}",
            needed=f"a CPU{f' and {most} MB of memory' if most else ''} for each partition",
            next_step="ray status   (says what is taken), or fewer [engine] partitions",
        )


def _store_is_full(error: BaseException) -> ServerError:
    return ServerError(
        found=f"rows in transit don't fit Ray's object store or its disk: {first_line(error)}",
        needed="more [engine] object_store_mb, or free disk where Ray spills",
        next_step="ringfence partition   (says how many bytes each worker receives)",
    )


def _is_loss(error: RayTaskError) -> bool:
    """A task fails with the loss of what another one was to give it."""
    return isinstance(error.cause, RayError)


def _is_answered(answer: Any) -> bool:
    try:
        ray.get(answer, timeout=0)
    except (RayError, GetTimeoutError):
        return False
    return True


def machine_of(error: BaseException) -> str:
    """Return the address of the machine that an error of a call came from."""
    match = MACHINE.search(str(error))
    return match.group(1) if match else "one machine"


def last_line(error: BaseException) -> str:
    """Return the last line that an error says: of a call, the exception itself."""
    return next((line for line in reversed(str(error).splitlines()) if line.strip()), "")
