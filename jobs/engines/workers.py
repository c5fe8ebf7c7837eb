"""Workers of a divided pass: calls by name, results as handles until they are fetched."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any, Protocol


class WorkerLost(Exception):
    """A worker died, or its machine: what it held is gone, or can't be trusted."""


class Workers(Protocol):
    """Partition hosts (see `partition_host`), one per partition.

    A handle may be given to another call in the place of a value: it goes from worker to worker and
    never through the caller.
    """

    @property
    def count(self) -> int:
        """How many partitions there are."""
        ...

    def call(self, number: int, method: str, *arguments: Any, returns: int = 1) -> list[Any]:
        """Begin a method of one host; return a handle for each of its answers."""
        ...

    def get(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for answers; raise `WorkerLost` where one will never come."""
        ...

    def revive(self) -> None:
        """Replace the hosts that are gone by empty ones."""
        ...


def is_short_of_memory(cause: BaseException | None, limit_mb: int | None) -> bool:
    """Whether a worker failed for lack of memory, which Python reports in several ways.

    A library that does not fit below the worker's limit can't be loaded: an OSError without number.
    """
    if isinstance(cause, OSError):
        return cause.errno == errno.ENOMEM or (cause.errno is None and limit_mb is not None)
    return isinstance(cause, MemoryError)
