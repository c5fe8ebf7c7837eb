"""One forward pass over partitions: who is asked for what, in which order.

Rows of tables go from worker to worker. What comes here are counts, and the outputs at the wanted
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.engines.partition_host import Standing, no_rows
from ringfence.jobs.engines.partitioned_pass import PartitionedPass, split_update
from ringfence.models.inference import InferenceGraph, InferencePlan, incoming
from ringfence.models.inference.partition import PartUpdate, newest_inputs, rows_around
from ringfence.models.inference.partition.part import TableName, Whose

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

NUMBER_BYTES = 4


@dataclass(slots=True)
class DividedPass(PartitionedPass[InferencePlan, InferenceGraph]):
    """A pass over a graph of one label."""

    @property
    def version(self) -> int:
        """The version of the graph."""
        return self.graph.version

    def run(self, wanted: Ints) -> Float32s:
        """Return the outputs at `wanted` [m, classes]; a row may be wanted more than once."""
        ascending = bool((wanted[1:] > wanted[:-1]).all())
        rows = wanted if ascending else np.unique(wanted)
        with self.stage("send"):
            self.bring_up_to_date()
        with self.stage("first layer"):
            self._refresh(rows_around(self.plan, self.graph, rows))
        with self.stage("outputs"):
            found = self._wanted_outputs(rows)
        with self.stage("seal"):
            self.each(range(self.workers.count), "seal")
        return found if ascending else found[np.searchsorted(rows, wanted)]

    def _wanted_outputs(self, rows: Ints) -> Float32s:
        by = self.owners[rows]
        asked = np.unique(by).tolist()
        self.each(asked, "want", lambda part: (rows[by == part],))
        found = np.empty((len(rows), self.plan.classes), np.float32)
        for part, outputs in self._outputs(asked).items():
            found[by == part] = outputs
        return found

    def updates(self, part: int, standing: Standing) -> Iterator[PartUpdate]:
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
        for block, described in split_update(rows, altered):
            near = incoming(self.graph, block)
            yield PartUpdate(
                self.graph.version, nodes, joined, block, near.offsets, near.sources,
                described, np.ascontiguousarray(self.features[described], np.float32),
            )  # fmt: skip
            nodes, joined = len(self.owners), self.owners[:0]

    def _refresh(self, needed: NDArray[np.bool_]) -> None:
        """Make the rows of the second table that are out of date; `needed` bool [n]."""
        asked = np.unique(self.owners[needed]).tolist()

        def owned(part: int) -> tuple[Ints, Ints]:
            rows = np.flatnonzero(needed & (self.owners == part))
            return rows, newest_inputs(self.plan, self.graph, rows)

        stale = self.each(asked, "mark_stale", owned)
        given = self._given([part for part in asked if stale[part]], "stale", "first")
        nothing = self._nothing("first")
        made = self.each(asked, "compute_second", lambda part: given.get(part, nothing))
        self.computed = sum(made.values())

    def _outputs(self, asked: Sequence[int]) -> dict[int, Float32s]:
        if not self.plan.reaches_everyone:
            given = self._given(asked, "wanted", "second")
            return self.each(asked, "outputs", given.__getitem__)
        everyone = list(range(self.workers.count))
        needs, rows = self.needs(dict.fromkeys(everyone, ("all",)))
        steps = self.each(everyone, "begin_walk")[0]
        for _ in range(steps):
            self.each(everyone, "step", self._gifts(needs, rows, "walk").__getitem__)
        return self.each(asked, "walked")

    def _given(
        self, asked: Sequence[int], whose: Whose, table: TableName
    ) -> dict[int, Sequence[Any]]:
        """Handles of the rows that others must give to each partition for a layer."""
        if not self.plan.first_width:
            return {part: self._nothing(table) for part in asked}
        needs, rows = self.needs(dict.fromkeys(asked, (whose,)))
        return self._gifts(needs, rows, table)

    def _gifts(
        self, needs: dict[int, list[Any]], rows: int, table: TableName
    ) -> dict[int, Sequence[Any]]:
        nothing = self._nothing(table)
        self.moved += rows * (self._width(table) + 1) * NUMBER_BYTES
        return {
            part: [
                nothing[owner] if rows is None else self.workers.call(owner, "give", table, rows)[0]
                for owner, rows in enumerate(handles)
            ]
            for part, handles in needs.items()
        }

    def _nothing(self, table: TableName) -> Sequence[Any]:
        return [no_rows(self._width(table))] * self.workers.count

    def _width(self, table: TableName) -> int:
        return self.plan.first_width if table == "first" else self.plan.second_width
