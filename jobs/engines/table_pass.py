"""A pass over partitions of a network with one list of neighbours per node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.engines.partition_host import PartitionStatus
from ringfence.jobs.engines.partitioned_pass import PartitionedPass, split_update
from ringfence.models.inference import InferenceGraph, InferencePlan, in_neighbours
from ringfence.models.inference.partition import TableUpdate, newest_inputs, rows_around

Ints = NDArray[np.int64]


@dataclass(slots=True)
class PartitionedTablePass(PartitionedPass[InferencePlan, InferenceGraph]):
    """A pass that computes what changed; features are read as ``features[rows]``."""

    reused = "only what changed was computed again"

    @property
    def version(self) -> int:
        """The version of the graph."""
        return self.graph.version

    def updates(self, part: int, status: PartitionStatus) -> Iterator[TableUpdate]:
        """Lists and features of owned rows that are new, or changed since; in blocks."""
        owned = np.flatnonzero(self.owners == part)
        new = owned >= status.nodes
        changed = owned[new | (self.graph.changed[owned] > status.version)]
        altered = self.graph.altered.since(status.version)
        altered = np.union1d(altered[self.owners[altered] == part], owned[new])
        nodes, joined = status.nodes, self.owners[status.nodes :]
        if status.version == self.graph.version and not len(joined):
            return
        rows = np.union1d(changed, altered)
        for block, described in split_update(rows, altered):
            near = in_neighbours(self.graph, block)
            yield TableUpdate(
                self.graph.version, nodes, joined, block, near.offsets, near.sources,
                described, np.ascontiguousarray(self.features[described], np.float32),
            )  # fmt: skip
            nodes, joined = len(self.owners), self.owners[:0]

    def compute_layers(self, rows: Ints) -> None:
        """Make the rows of the second table that the outputs need and that are out of date."""
        with self.stage("first layer"):
            needed = rows_around(self.plan, self.graph, rows)

            def owned(part: int) -> tuple[Ints, Ints]:
                mine = np.flatnonzero(needed & (self.owners == part))
                return mine, newest_inputs(self.plan, self.graph, mine)

            self.computed = self.compute(0, np.unique(self.owners[needed]).tolist(), owned)

    def compute_outputs(self, rows: Ints) -> None:
        """Compute the second layer, or walk over the whole graph if a change reaches everyone."""
        if self.plan.reaches_everyone:
            self.compute(1, range(self.workers.count), times=self.plan.steps)
            return
        by = self.owners[rows]
        self.compute(1, np.unique(by).tolist(), lambda part: (rows[by == part],))

    def row_width(self, layer: int) -> int:
        """Numbers of a row of the table that a layer reads, and the scale of its node."""
        return (self.plan.second_width if layer else self.plan.first_width) + 1
