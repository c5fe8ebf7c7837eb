"""One forward pass over partitions: which calls go to which partition, in which order.

Rows go from worker to worker. What comes here are counts, and the outputs at the wanted rows.
"""

from __future__ import annotations

import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.progress import Progress, no_progress
from ringfence.jobs.engines.partition_host import PartitionStatus
from ringfence.jobs.engines.workers import Workers
from ringfence.models.inference.partition import PartUpdate

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

ROWS_PER_UPDATE = 32_768  # sent to a worker at a time; one more is made ready meanwhile
NUMBER_BYTES = 4


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


class AnyPlan(Protocol):
    """A network ready for its kernels."""

    @property
    def classes(self) -> int:
        """Number of outputs."""
        ...


Plan = TypeVar("Plan", bound=AnyPlan)
Graph = TypeVar("Graph")


def forget_stage(_stage: Stage) -> None:
    """No-op callback for stages."""


def split_update(rows: Ints, described: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield ascending rows in blocks, each with those of `described` in it; at least one block.

    All of `described`, ascending too, are among the rows: so its part of a block is a slice, and no
    block looks at all of it.

    >>> [(rows.tolist(), some.tolist()) for rows, some in split_update(np.arange(3), np.array([1]))]
    [([0, 1, 2], [1])]
    """
    for start in range(0, max(len(rows), 1), ROWS_PER_UPDATE):
        block = rows[start : start + ROWS_PER_UPDATE]
        first = np.searchsorted(described, block[:1]).sum()
        last = np.searchsorted(described, block[-1:], side="right").sum()
        yield block, described[first:last]


def keep_pages() -> None:
    """No-op callback for releasing pages of the graph."""


@dataclass(slots=True)
class PartitionedPass(ABC, Generic[Plan, Graph]):
    """A pass of one plan over one graph; `owners` int16 [n] says which partition owns a row.

    features: where the features or columns of rows are read · report: called after each stage ·
    release: called when pages of the graph may be released, so that this process stays small.
    computed, exchanged, sent: rows of layers that were computed, rows that went from one partition
    to another, and rows whose lists or features were sent to a partition; filled: partitions that
    had nothing; moved: bytes of all that was sent and exchanged.
    """

    reused: ClassVar[str]  # the note if no partition had to be filled

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
    progress: Progress = field(default=no_progress, init=False)

    @property
    @abstractmethod
    def version(self) -> int:
        """The version of the graph."""

    @abstractmethod
    def updates(self, part: int, status: PartitionStatus) -> Iterator[PartUpdate]:
        """What a partition lacks, in blocks."""

    @abstractmethod
    def compute_layers(self, rows: Ints) -> None:
        """Compute the layers that the outputs at `rows` need, each in a stage of its own."""

    @abstractmethod
    def compute_outputs(self, rows: Ints) -> None:
        """Compute what is still missing for the outputs at `rows`."""

    @abstractmethod
    def row_width(self, layer: int) -> int:
        """About how many numbers a partition is given of a row that a layer reads."""

    def run(self, wanted: Ints) -> Float32s:
        """Return the outputs at `wanted` [m, classes]; a row may be wanted more than once."""
        ascending = bool((wanted[1:] > wanted[:-1]).all())
        rows = wanted if ascending else np.unique(wanted)
        with self.stage("send"):
            self.bring_up_to_date()
        self.compute_layers(rows)
        with self.stage("outputs"):
            self.compute_outputs(rows)
            outputs = self._collect_outputs(rows)
        with self.stage("seal"):
            self.each(range(self.workers.count), "seal")
        return outputs if ascending else outputs[np.searchsorted(rows, wanted)]

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
        """Send each partition what changed at its rows since it was last up to date."""
        opened = [
            self.workers.call(part, "open", self.name, self.plan, self.version)[0]
            for part in range(self.workers.count)
        ]
        for part, status in enumerate(self.workers.get(opened)):
            crc = zlib.crc32(self.owners[: status.nodes].tobytes())
            if status.nodes > len(self.owners) or status.owners_crc != crc:
                (status,) = self.workers.get(self.workers.call(part, "clear"))
            self.filled += status.nodes == 0
            self._send(part, status)

    def _send(self, part: int, status: PartitionStatus) -> None:
        under_way: list[Any] = []
        for update in self.updates(part, status):
            self.sent += len(update.rows)
            self.moved += update.bytes
            self.progress("forward pass: send", self.sent, 0)
            self.release()
            under_way += self.workers.call(part, "update", update)
            if len(under_way) > 1:
                self.workers.get([under_way.pop(0)])
        self.workers.get(under_way)

    def compute(
        self,
        layer: int,
        asked: Sequence[int],
        chosen: Callable[[int], Sequence[Any]] = lambda _part: (),
        times: int = 1,
    ) -> int:
        """Let some partitions compute a layer; return at how many rows.

        chosen: by partition, what its `Part.needs` takes besides the layer. What the partitions
        need of each other goes from one to the other before they compute, each of `times` times.
        """
        needs, rows = self._needs(layer, asked, chosen)
        computed: dict[int, int] = {}
        for _ in range(times):
            self.moved += rows * self.row_width(layer) * NUMBER_BYTES
            given = {part: self._gifts(layer, handles) for part, handles in needs.items()}
            computed = self.each(asked, "compute", given.__getitem__)
        return sum(computed.values())

    def _needs(
        self, layer: int, asked: Sequence[int], chosen: Callable[[int], Sequence[Any]]
    ) -> tuple[dict[int, list[Any]], int]:
        """By partition and owner: a handle of the rows that it needs; None where there are none.

        The number of all rows comes with it.
        """
        count = self.workers.count
        called = {
            part: self.workers.call(part, "needs", layer, *chosen(part), returns=count + 1)
            for part in asked
        }
        counts = self.workers.get([handles[0] for handles in called.values()])
        needs = {
            part: [
                handle if n else None
                for handle, n in zip(handles[1:], by_owner.tolist(), strict=True)
            ]
            for (part, handles), by_owner in zip(called.items(), counts, strict=True)
        }
        rows = sum(int(by_owner.sum()) for by_owner in counts)
        self.exchanged += rows
        return needs, rows

    def _gifts(self, layer: int, needed: Sequence[Any]) -> list[Any]:
        """The layer, then by owner a handle of what it gives of the rows that are needed of it."""
        return [
            layer,
            *(
                None if rows is None else self.workers.call(owner, "give", layer, rows)[0]
                for owner, rows in enumerate(needed)
            ),
        ]

    def _collect_outputs(self, rows: Ints) -> Float32s:
        by = self.owners[rows]
        outputs = np.empty((len(rows), self.plan.classes), np.float32)
        asked = np.unique(by).tolist()
        outputs_of = self.each(asked, "outputs", lambda part: (rows[by == part],))
        for part, values in outputs_of.items():
            outputs[by == part] = values
        return outputs

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
