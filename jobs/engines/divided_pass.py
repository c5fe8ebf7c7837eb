"""One forward pass over partitions: who is asked for what, in which order.

Rows of tables go from worker to worker. What comes here are counts, and the outputs at the wanted
rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.engines.partition_host import Standing, no_rows
from ringfence.jobs.engines.workers import Workers
from ringfence.models.inference import InferenceGraph, InferencePlan, incoming
from ringfence.models.inference.partition import PartUpdate, newest_inputs, rows_around
from ringfence.models.inference.partition.part import TableName, Whose

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

ROWS_PER_UPDATE = 32_768  # sent to a worker at a time; one more is made ready meanwhile


@dataclass(slots=True)
class DividedPass:
    """A pass of one plan over one graph; `owners` int16 [n] says which partition owns a row.

    computed, exchanged, sent: rows of the first layer that were made, rows that went from one
    partition to another, and rows whose lists or features were sent to a partition.
    """

    workers: Workers
    name: str
    plan: InferencePlan
    graph: InferenceGraph
    features: Any
    owners: NDArray[np.int16]
    computed: int = field(default=0, init=False)
    exchanged: int = field(default=0, init=False)
    sent: int = field(default=0, init=False)
    filled: int = field(default=0, init=False)

    def run(self, wanted: Ints) -> Float32s:
        """Return the outputs at `wanted` [m, classes]; a row may be wanted more than once."""
        rows, places = np.unique(wanted, return_inverse=True)
        self._bring_up_to_date()
        self._refresh(rows_around(self.plan, self.graph, rows))
        by = self.owners[rows]
        asked = np.unique(by).tolist()
        self._each(asked, "want", {part: (rows[by == part],) for part in asked})
        found = np.empty((len(rows), self.plan.classes), np.float32)
        for part, outputs in self._outputs(asked).items():
            found[by == part] = outputs
        self._each(range(self.workers.count), "seal")
        return found[places]

    def _bring_up_to_date(self) -> None:
        """Send each partition what changed at its rows since it was last right."""
        version = self.graph.version
        opened = [
            self.workers.call(part, "open", self.name, self.plan, version)[0]
            for part in range(self.workers.count)
        ]
        for part, standing in enumerate(self.workers.get(opened)):
            crc = zlib.crc32(self.owners[: standing.nodes].tobytes())
            if standing.nodes > len(self.owners) or standing.owners_crc != crc:
                (standing,) = self.workers.get(self.workers.call(part, "forget"))
            self.filled += standing.nodes == 0
            self._send(part, standing)

    def _send(self, part: int, standing: Standing) -> None:
        under_way: list[Any] = []
        for update in self._updates(part, standing):
            self.sent += len(update.rows)
            under_way += self.workers.call(part, "update", update)
            if len(under_way) > 1:
                self.workers.get([under_way.pop(0)])
        self.workers.get(under_way)

    def _updates(self, part: int, standing: Standing) -> Iterator[PartUpdate]:
        """Lists and features of owned rows that are new, or changed since; in blocks."""
        own = np.flatnonzero(self.owners == part)
        new = own >= standing.nodes
        changed = own[new | (self.graph.changed[own] > standing.version)]
        altered = self.graph.altered.since(standing.version)
        altered = np.union1d(altered[self.owners[altered] == part], own[new])
        nodes, joined = standing.nodes, self.owners[standing.nodes :]
        if standing.version == self.graph.version and not len(joined):
            return
        rows = np.union1d(changed, altered)
        for start in range(0, max(len(rows), 1), ROWS_PER_UPDATE):
            block = rows[start : start + ROWS_PER_UPDATE]
            near = incoming(self.graph, block)
            described = np.intersect1d(block, altered, assume_unique=True)
            yield PartUpdate(
                self.graph.version, nodes, joined, block, near.offsets, near.sources,
                described, np.ascontiguousarray(self.features[described], np.float32),
            )  # fmt: skip
            nodes, joined = len(self.owners), self.owners[:0]

    def _refresh(self, needed: Ints) -> None:
        """Make the rows of the second table that are out of date."""
        newest, by = newest_inputs(self.plan, self.graph, needed), self.owners[needed]
        asked = np.unique(by).tolist()
        mine = {part: (needed[by == part], newest[by == part]) for part in asked}
        stale = self._each(asked, "mark_stale", mine)
        given = self._given([part for part in asked if stale[part]], "stale", "first")
        done = {part: given.get(part, self._nothing("first")) for part in asked}
        self.computed = sum(self._each(asked, "compute_second", done).values())

    def _outputs(self, asked: Sequence[int]) -> dict[int, Float32s]:
        if not self.plan.reaches_everyone:
            return self._each(asked, "outputs", self._given(asked, "wanted", "second"))
        everyone = list(range(self.workers.count))
        needs = self._needs(everyone, "all")
        steps = self._each(everyone, "begin_walk")[0]
        for _ in range(steps):
            self._each(everyone, "step", self._gifts(needs, "walk"))
        return self._each(asked, "walked")

    def _given(
        self, asked: Sequence[int], whose: Whose, table: TableName
    ) -> dict[int, Sequence[Any]]:
        """Handles of the rows that others must give to each partition for a layer."""
        if not self.plan.first_width:
            return {part: self._nothing(table) for part in asked}
        return self._gifts(self._needs(asked, whose), table)

    def _needs(self, asked: Sequence[int], whose: Whose) -> dict[int, list[Any]]:
        """By partition and owner: a handle of the rows that it needs; None where there are none."""
        called = {
            part: self.workers.call(part, "needs", whose, returns=self.workers.count + 1)
            for part in asked
        }
        counts = self.workers.get([handles[0] for handles in called.values()])
        found = {}
        for (part, handles), many in zip(called.items(), counts, strict=True):
            self.exchanged += int(many.sum())
            found[part] = [
                rows if n else None for rows, n in zip(handles[1:], many.tolist(), strict=True)
            ]
        return found

    def _gifts(self, needs: dict[int, list[Any]], table: TableName) -> dict[int, Sequence[Any]]:
        nothing = self._nothing(table)
        return {
            part: [
                nothing[owner] if rows is None else self.workers.call(owner, "give", table, rows)[0]
                for owner, rows in enumerate(handles)
            ]
            for part, handles in needs.items()
        }

    def _nothing(self, table: TableName) -> Sequence[Any]:
        width = self.plan.first_width if table == "first" else self.plan.second_width
        return [no_rows(width)] * self.workers.count

    def _each(
        self,
        asked: Sequence[int],
        method: str,
        arguments: Mapping[int, Sequence[Any]] | None = None,
    ) -> dict[int, Any]:
        """Call a method of several partitions at once; return their answers."""
        given: Mapping[int, Sequence[Any]] = {} if arguments is None else arguments
        handles = [self.workers.call(part, method, *given.get(part, ()))[0] for part in asked]
        return dict(zip(asked, self.workers.get(handles), strict=True))
