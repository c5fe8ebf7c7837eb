"""What passes over partitions share: stages, what is sent before them, calls of several at once."""

from __future__ import annotations

import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.engines.partition_host import Standing
from ringfence.jobs.engines.workers import Workers

Ints = NDArray[np.int64]

Plan = TypeVar("Plan")
Graph = TypeVar("Graph")

ROWS_PER_UPDATE = 32_768  # sent to a worker at a time; one more is made ready meanwhile


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a pass that is over: seconds on the clock, rows that moved, and their bytes.

    `divide`: who owns new rows · `send`: what changed goes to the partitions · layers and
    `outputs`: rows of others that partitions need · `seal`: nothing moves.
    """

    name: str
    seconds: float
    rows: int
    moved: int


class Update(Protocol):
    """What changed at rows of one partition."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows whose lists are new or other than before."""
        ...

    @property
    def bytes(self) -> int:
        """How much of it goes to the partition."""
        ...


def forget_stage(_stage: Stage) -> None:
    """Tell nobody of a stage."""


def tell_nobody(_what: str, _done: int, _all: int) -> None:
    """Tell nobody how far a pass has come."""


def split_update(rows: Ints, described: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield ascending rows in blocks, each with those of `described` in it; at least one block.

    All of `described`, ascending too, are among the rows: so its part of a block is a slice, and no
    block looks at all of it.

    >>> [(block.tolist(), own.tolist()) for block, own in split_update(np.arange(3), np.array([1]))]
    [([0, 1, 2], [1])]
    """
    for start in range(0, max(len(rows), 1), ROWS_PER_UPDATE):
        block = rows[start : start + ROWS_PER_UPDATE]
        first = np.searchsorted(described, block[:1]).sum()
        last = np.searchsorted(described, block[-1:], side="right").sum()
        yield block, described[first:last]


def keep_pages() -> None:
    """Let no page of the graph go."""


@dataclass(slots=True)
class PartitionedPass(ABC, Generic[Plan, Graph]):
    """A pass of one plan over one graph; `owners` int16 [n] says which partition owns a row.

    features: rows by their numbers, ``features[rows]`` · report: is told of each stage that is over
    · release: is called when pages of the graph may go, so that this process stays small.
    computed, exchanged, sent: rows of the first layer that were made, rows that went from one
    partition to another, and rows whose lists or features were sent to a partition; filled:
    partitions that had nothing; moved: bytes of all that was sent and exchanged.
    """

    calls: ClassVar[str] = ""  # what the names of the hosts' methods begin with
    kept: ClassVar[str] = "only what changed was computed again"  # where nothing was filled

    workers: Workers
    name: str
    plan: Plan
    graph: Graph
    features: Any
    owners: NDArray[np.int16]
    report: Callable[[Stage], None] = forget_stage
    release: Callable[[], None] = keep_pages
    computed: int = field(default=0, init=False)
    exchanged: int = field(default=0, init=False)
    sent: int = field(default=0, init=False)
    filled: int = field(default=0, init=False)
    moved: int = field(default=0, init=False)
    seconds: dict[str, float] = field(default_factory=dict, init=False)
    progress: Callable[[str, int, int], None] = field(default=tell_nobody, init=False)

    @property
    @abstractmethod
    def version(self) -> int:
        """The version of the graph."""

    @abstractmethod
    def updates(self, part: int, standing: Standing) -> Iterator[Update]:
        """What a partition lacks, in blocks."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure and report what is done in the block."""
        self.progress(f"forward pass: {name}", 0, 0)
        begun, rows, moved = time.perf_counter(), self.sent + self.exchanged, self.moved
        yield
        self.release()
        stage = Stage(
            name, time.perf_counter() - begun, self.sent + self.exchanged - rows, self.moved - moved
        )
        self.seconds[name] = stage.seconds
        self.report(stage)

    def bring_up_to_date(self) -> None:
        """Send each partition what changed at its rows since it was last right."""
        opened = [
            self.workers.call(part, f"{self.calls}open", self.name, self.plan, self.version)[0]
            for part in range(self.workers.count)
        ]
        for part, standing in enumerate(self.workers.get(opened)):
            crc = zlib.crc32(self.owners[: standing.nodes].tobytes())
            if standing.nodes > len(self.owners) or standing.owners_crc != crc:
                forgotten = self.workers.call(part, f"{self.calls}forget")
                (standing,) = self.workers.get(forgotten)
            self.filled += standing.nodes == 0
            self._send(part, standing)

    def _send(self, part: int, standing: Standing) -> None:
        under_way: list[Any] = []
        for update in self.updates(part, standing):
            self.sent += len(update.rows)
            self.moved += update.bytes
            self.progress("forward pass: send", self.sent, 0)
            self.release()
            under_way += self.workers.call(part, f"{self.calls}update", update)
            if len(under_way) > 1:
                self.workers.get([under_way.pop(0)])
        self.workers.get(under_way)

    def needs(
        self, asked: Mapping[int, Sequence[Any]], method: str = "needs"
    ) -> tuple[dict[int, list[Any]], int]:
        """By partition and owner: a handle of the rows that it needs; None where there are none.

        `asked`: the arguments of each partition's call. The number of all rows comes with it.
        """
        called = {
            part: self.workers.call(part, method, *arguments, returns=self.workers.count + 1)
            for part, arguments in asked.items()
        }
        counts = self.workers.get([handles[0] for handles in called.values()])
        found, rows = {}, 0
        for (part, handles), many in zip(called.items(), counts, strict=True):
            rows += int(many.sum())
            found[part] = [
                handle if n else None for handle, n in zip(handles[1:], many.tolist(), strict=True)
            ]
        self.exchanged += rows
        return found, rows

    def each(
        self,
        asked: Sequence[int],
        method: str,
        arguments: Callable[[int], Sequence[Any]] = lambda _part: (),
    ) -> dict[int, Any]:
        """Call a method of several partitions at once; return their answers.

        The arguments of a partition are made when it is called, and not held after that.
        """
        handles = [self.workers.call(part, method, *arguments(part))[0] for part in asked]
        return dict(zip(asked, self.workers.get(handles), strict=True))
