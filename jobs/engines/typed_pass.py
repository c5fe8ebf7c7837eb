"""A pass over partitions of a network with weights per label and relation.

Each layer is computed at the rows that the next one needs, and neither sums of hubs nor rows of
layers are kept from pass to pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.jobs.engines.partition_host import PartitionStatus
from ringfence.jobs.engines.partitioned_pass import PartitionedPass, split_update
from ringfence.jobs.project.columns.column_encoders import ColumnEncoders
from ringfence.jobs.project.columns.relation_means import rows_touched_since
from ringfence.models.inference.graph import listed_through
from ringfence.models.inference.partition import TypedUpdate
from ringfence.models.inference.several_labels.forward import needed_rows
from ringfence.models.inference.several_labels.graph import TypedGraph
from ringfence.models.inference.several_labels.plan import TypedPlan

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

CODES = 256
NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class EncodedColumns:
    """Columns of rows as the network takes them, encoded on demand."""

    mirror: Mirror
    encoders: ColumnEncoders

    def written_since(self, version: int) -> Ints:
        """Return the rows whose columns were written after a version."""
        written = np.flatnonzero(self.mirror.revised > version)
        return np.union1d(written, rows_touched_since(self.mirror, version))

    def take(self, label: int, rows: Ints) -> Float32s:
        """Return the encoded columns of some rows of a label."""
        return self.encoders.encode(self.mirror, label, rows)


@dataclass(slots=True)
class PartitionedTypedPass(PartitionedPass[TypedPlan, TypedGraph]):
    """A pass over a graph of several labels; `features` are `EncodedColumns`."""

    reused = "only what changed was sent"

    @property
    def version(self) -> int:
        """The version of the graph."""
        return self.graph.relationships.version

    def updates(self, part: int, status: PartitionStatus) -> Iterator[TypedUpdate]:
        """Entries and columns of owned rows that are new, or changed since; in blocks."""
        owned = np.flatnonzero(self.owners == part)
        new = owned[owned >= status.nodes]
        changed = owned[self.graph.relationships.changed[owned] > status.version]
        written = self.features.written_since(status.version)
        written = np.union1d(written[self.owners[written] == part], new)
        rows = np.union1d(np.union1d(changed, new), written)
        nodes, fresh = status.nodes, slice(status.nodes, None)
        if status.version == self.version and nodes == len(self.owners):
            return
        for block, described in split_update(rows, written):
            offsets, others, codes = _entries(self.graph, block)
            yield TypedUpdate(
                self.version, nodes, self.owners[fresh], block, offsets,
                self.graph.labels[fresh].astype(np.uint8), others, codes, self._encoded(described),
            )  # fmt: skip
            nodes, fresh = len(self.owners), slice(len(self.owners), None)

    def _encoded(self, rows: Ints) -> Mapping[int, tuple[Ints, Float32s]]:
        labels, columns = self.graph.labels[rows], {}
        for label in np.unique(labels).tolist():
            if self.plan.widths[label]:
                of_label = rows[labels == label]
                columns[label] = (of_label, self.features.take(label, of_label))
        return columns

    def compute_layers(self, rows: Ints) -> None:
        """Compute each layer at all rows that the next one needs."""
        for layer, needed in enumerate(needed_rows(self.plan, self.graph, rows)):
            with self.stage(f"layer {layer + 1}"):
                self._compute_layer(layer, needed)

    def _compute_layer(self, layer: int, needed: Mapping[int, Ints]) -> None:
        """One layer at the rows that are needed, by label."""
        computed = [of_label for label, of_label in needed.items()
                    if label in self.plan.layers[layer].roots]  # fmt: skip
        rows = np.sort(np.concatenate([NO_ROWS, *computed]))
        by = self.owners[rows]
        self.computed += self.compute(
            layer, np.unique(by).tolist(), lambda part: (rows[by == part],)
        )

    def compute_outputs(self, rows: Ints) -> None:
        """The last layer has computed the outputs."""

    def row_width(self, layer: int) -> int:
        """About how many numbers a row has that a layer reads."""
        if layer == 0:
            return round(float(np.mean([width for width in self.plan.widths if width] or [0])))
        biases = self.plan.layers[layer - 1].biases
        return round(float(np.mean([len(bias) for bias in biases.values()])))


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
    place, other, code_ = (np.concatenate(parts) for parts in (places, others, codes))
    order = np.lexsort((code_, other, place))
    counts = np.bincount(place, minlength=len(rows))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return offsets, other[order].astype(np.int32), code_[order]
