"""One forward pass of a typed network over partitions: layer by layer, rows of others in between.

As `divided_pass`, with rows of several labels. Each layer is computed at the rows that the next one
needs, and neither sums of hubs nor rows of layers are kept from pass to pass. What comes here are
counts, and the outputs at the wanted rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.typed import TypedMirror
from ringfence.jobs.engines.partition_host import Standing
from ringfence.jobs.engines.partitioned_pass import PartitionedPass, split_update
from ringfence.jobs.project.typed_inputs import TypedEncoders
from ringfence.models.inference.graph import listed_through
from ringfence.models.inference.partition.typed_part import TypedUpdate
from ringfence.models.inference.typed.forward import needed_rows
from ringfence.models.inference.typed.graph import TypedGraph
from ringfence.models.inference.typed.plan import TypedPlan

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

CODES = 256
NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True)
class EncodedColumns:
    """Columns of rows as the network takes them, encoded when they are asked for."""

    mirror: TypedMirror
    encoders: TypedEncoders

    def written_since(self, version: int) -> Ints:
        """Return the rows whose columns were written after a version."""
        return np.flatnonzero(self.mirror.revised > version)

    def take(self, label: int, rows: Ints) -> Float32s:
        """Return the encoded columns of some rows of a label."""
        return self.encoders.encode(self.mirror, label, rows)


@dataclass(slots=True)
class TypedDividedPass(PartitionedPass[TypedPlan, TypedGraph]):
    """A pass over a graph of several labels; `features` are `EncodedColumns`."""

    calls = "typed_"
    kept = "only what changed was sent"

    @property
    def version(self) -> int:
        """The version of the graph."""
        return self.graph.relationships.version

    def run(self, wanted: Ints) -> Float32s:
        """Return the outputs at `wanted` [m, classes]; a row may be wanted more than once."""
        rows, places = np.unique(wanted, return_inverse=True)
        with self.stage("send"):
            self.bring_up_to_date()
        for number, needed in enumerate(needed_rows(self.plan, self.graph, rows)):
            with self.stage(f"layer {number + 1}"):
                self._compute(number, needed)
        with self.stage("outputs"):
            found = self._outputs(rows)
        with self.stage("seal"):
            self.each(range(self.workers.count), "typed_seal")
        return found[places]

    def updates(self, part: int, standing: Standing) -> Iterator[TypedUpdate]:
        """Entries and columns of owned rows that are new, or changed since; in blocks."""
        own = np.flatnonzero(self.owners == part)
        new = own[own >= standing.nodes]
        changed = own[self.graph.relationships.changed[own] > standing.version]
        written = self.features.written_since(standing.version)
        written = np.union1d(written[self.owners[written] == part], new)
        rows = np.union1d(np.union1d(changed, new), written)
        nodes, fresh = standing.nodes, slice(standing.nodes, None)
        if standing.version == self.version and nodes == len(self.owners):
            return
        for block, described in split_update(rows, written):
            yield TypedUpdate(
                self.version, nodes, self.owners[fresh], self.graph.labels[fresh].astype(np.uint8),
                block, *_entries(self.graph, block), self._encoded(described),
            )  # fmt: skip
            nodes, fresh = len(self.owners), slice(len(self.owners), None)

    def _encoded(self, rows: Ints) -> Mapping[int, tuple[Ints, Float32s]]:
        labels, found = self.graph.labels[rows], {}
        for label in np.unique(labels).tolist():
            if self.plan.widths[label]:
                mine = rows[labels == label]
                found[label] = (mine, self.features.take(label, mine))
        return found

    def _compute(self, number: int, needed: Mapping[int, Ints]) -> None:
        """One layer at all rows that the next one needs, by label."""
        mine = [rows for label, rows in needed.items() if label in self.plan.layers[number].roots]
        rows = np.sort(np.concatenate(mine)) if mine else np.empty(0, np.int64)
        by = self.owners[rows]
        asked = np.unique(by).tolist()
        needs, exchanged = self.needs(
            {part: (number, rows[by == part]) for part in asked}, "typed_needs"
        )
        self.moved += exchanged * self._mean_width(number) * NUMBER_BYTES
        given = {part: (number, *self._gifts(number, owned)) for part, owned in needs.items()}
        self.computed += sum(self.each(asked, "typed_compute", given.__getitem__).values())

    def _gifts(self, number: int, needed: Sequence[Any]) -> list[Any]:
        """By owner, a handle of what a layer is given of the rows that are needed of it."""
        return [
            {} if rows is None else self.workers.call(owner, "typed_give", number, rows)[0]
            for owner, rows in enumerate(needed)
        ]

    def _mean_width(self, number: int) -> int:
        """About how many numbers a row has that a layer is given."""
        if number == 0:
            return round(float(np.mean([width for width in self.plan.widths if width] or [0])))
        biases = self.plan.layers[number - 1].biases
        return round(float(np.mean([len(bias) for bias in biases.values()])))

    def _outputs(self, rows: Ints) -> Float32s:
        by = self.owners[rows]
        asked = np.unique(by).tolist()
        found = np.empty((len(rows), self.plan.classes), np.float32)
        outputs_of = self.each(asked, "typed_outputs", lambda part: (rows[by == part],))
        for part, outputs in outputs_of.items():
            found[by == part] = outputs
        return found


def _entries(graph: TypedGraph, rows: Ints) -> tuple[Ints, Any, Any]:
    """Offsets, other ends and codes of the entries of some rows, sorted by other end and code."""
    places: list[Ints] = [np.empty(0, np.int64)]
    others, codes = [np.empty(0, np.int32)], [np.empty(0, np.uint8)]
    for code in range(2 * len(graph.schema.relations)):
        takes = np.zeros(CODES, np.bool_)
        takes[code] = True
        near = listed_through(graph.relationships, rows, takes)
        places.append(np.repeat(np.arange(len(rows)), near.counts()))
        others.append(near.sources)
        codes.append(np.full(len(near.sources), code, np.uint8))
    place, other, code_ = (np.concatenate(one) for one in (places, others, codes))
    order = np.lexsort((code_, other, place))
    counts = np.bincount(place, minlength=len(rows))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return offsets, other[order].astype(np.int32), code_[order]
