"""One partition of a graph of several labels: the rows that it owns, and its share of each layer.

Rows stand in the order of the whole graph, so every list that is built here ascends as it does
there: the same kernels add the same numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import InferenceGraph
from ringfence.models.inference.partition.base import Part, PartUpdate
from ringfence.models.inference.partition.lists import OwnedLists
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.several_labels.forward import compute_layer
from ringfence.models.inference.several_labels.graph import typed_graph
from ringfence.models.inference.several_labels.plan import TypedPlan
from ringfence.models.schema import CLASSIFIED

__all__ = ["LabelledRows", "TypedPart", "TypedUpdate"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Values = Mapping[int, Float32s]
"""By label, numbers of some rows in their order."""


@dataclass(frozen=True, slots=True)
class TypedUpdate(PartUpdate):
    """What changed: labels of nodes that joined, entries of `rows`, encoded columns by label.

    others, codes: the entries, sorted by other end and code · encoded: rows whose columns are new
    or other than before, and their numbers.
    """

    labels: NDArray[np.uint8]
    others: NDArray[np.int32]
    codes: NDArray[np.uint8]
    encoded: Mapping[int, tuple[Ints, Float32s]]


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Numbers of rows of several labels: rows int64 [m], ascending; their labels; arrays by label.

    An array has a row for each of its label's rows, in their order.
    """

    rows: Ints
    labels: NDArray[np.uint8]
    arrays: Values

    def take(self, wanted: Ints) -> dict[int, Float32s]:
        """Return the numbers of some rows, by label, in their order; all must be here.

        >>> rows = np.array([2, 5, 7])
        >>> labels = np.array([0, 1, 0], np.uint8)
        >>> held = LabelledRows(rows, labels, {0: np.eye(2), 1: np.ones((1, 3))})
        >>> {label: values.tolist() for label, values in held.take(np.array([5, 7])).items()}
        {0: [[0.0, 1.0]], 1: [[1.0, 1.0, 1.0]]}
        """
        at = np.searchsorted(self.rows, wanted)
        if len(wanted) and not (at[-1] < len(self.rows) and (self.rows[at] == wanted).all()):
            raise ValueError("some of these rows are not here")
        labels, values = self.labels[at], {}
        for label in np.unique(labels).tolist():
            places = np.cumsum(self.labels == label) - 1
            values[label] = np.ascontiguousarray(self.arrays[label][places[at[labels == label]]])
        return values


@dataclass(slots=True)
class TypedPart(Part[TypedPlan]):
    """Entries and encoded columns of owned rows; no layer's rows are kept from pass to pass.

    labels uint8 [n]: of all rows · others, codes: the entries of each owned row · inputs: by layer,
    what it reads of owned rows; the first reads the encoded columns · wanted: rows at which the
    current layer is computed; known: these and their neighbours; near: the entries among them.
    """

    labels: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    others: OwnedLists = field(default_factory=OwnedLists)
    codes: OwnedLists = field(default_factory=OwnedLists)
    inputs: dict[int, LabelledRows] = field(default_factory=dict)
    wanted: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    near: InferenceGraph | None = None
    known: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def encoded(self, label: int) -> Float32s:
        """Columns of the owned rows of a label."""
        rows = int((self.labels[self.rows] == label).sum())
        return self.allocate(f"encoded.{label}", (rows, self.plan.widths[label]), np.float32)

    def update(self, update: TypedUpdate) -> None:
        """Apply changes."""
        self.join(update)
        self.labels = np.concatenate([self.labels, update.labels])
        places = self.places_of(update.rows)
        for lists, values in ((self.others, update.others), (self.codes, update.codes)):
            if lists.replace(places, update.offsets, values.astype(np.int32)):
                lists.rest_on(*lists.merged(len(self.rows)))
        labels = self.labels[self.rows]
        for label, (rows, columns) in update.encoded.items():
            at = np.searchsorted(self.rows[labels == label], rows)
            self.encoded(label)[at] = columns
        self.version = update.version
        self.inputs = {}

    def needs(self, layer: int, rows: Ints | None = None, newest: Ints | None = None) -> None:
        """Choose the rows at which a layer is computed, and find its halo."""
        self.wanted = np.array(self.rows if rows is None else rows)
        near = self.others.take(self.places_of(self.wanted))
        codes = self.codes.take(near.rows).sources
        heard = np.isin(codes, self._codes_heard(layer))
        before = np.concatenate([[0], np.cumsum(heard)])
        counts = before[near.offsets[1:]] - before[near.offsets[:-1]]
        sources = near.sources[heard].astype(np.int64)
        self.known = np.union1d(self.wanted, sources)
        self.near = self._local_graph(counts, sources, codes[heard].astype(np.uint8))
        self.halo = self.known[self.owners[self.known] != self.number]

    def give(self, layer: int, rows: Ints) -> dict[int, Float32s]:
        """Return what a layer reads of some owned rows, by label."""
        return self._inputs(layer).take(rows)

    def compute(self, layer: int, given: Sequence[Values | None], pool: Pool) -> int:
        """Compute a layer at the wanted rows; return how many."""
        if self.near is None:
            raise ValueError("call needs() before compute()")
        graph = typed_graph(self.near, self.plan.schema, self.labels[self.known])
        inputs = self._known_inputs(layer, given)
        at = np.searchsorted(self.known, self.wanted)
        labels, values = self.labels[self.wanted], {}
        for label in np.unique(labels).tolist():
            values[label] = compute_layer(
                self.plan, graph, layer, label, at[labels == label], inputs, pool
            )
        self.inputs[layer + 1] = LabelledRows(self.wanted, labels, values)
        self.near = None
        return len(self.wanted)

    def outputs(self, rows: Ints) -> Float32s:
        """Return what the last layer gave at some owned rows of the classified label."""
        nothing = np.empty((0, self.plan.classes), np.float32)
        return self._inputs(len(self.plan.layers)).take(rows).get(CLASSIFIED, nothing)

    def forget_pass(self) -> None:
        """Drop the rows of all layers."""
        self.inputs = {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return owned rows, labels, entries and encoded columns by name."""
        labels = range(len(self.plan.schema.labels))
        return {
            "rows": self.rows, "owners": self.owners, "labels": self.labels,
            **self.others.arrays("others."), **self.codes.arrays("codes."),
            **{f"encoded.{label}": self.encoded(label) for label in labels},
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, NDArray[Any]], version: int) -> None:
        """Go on with these arrays; encoded columns are mapped by their names when they are read."""
        self.rows, self.owners = arrays["rows"].copy(), arrays["owners"].copy()
        self.labels, self.version = arrays["labels"].copy(), version
        self.others = OwnedLists.from_arrays(arrays, "others.")
        self.codes = OwnedLists.from_arrays(arrays, "codes.")

    def _inputs(self, layer: int) -> LabelledRows:
        if layer == 0 and 0 not in self.inputs:
            arrays = {label: self.encoded(label) for label in range(len(self.plan.schema.labels))}
            self.inputs[0] = LabelledRows(self.rows, self.labels[self.rows], arrays)
        return self.inputs[layer]

    def _known_inputs(self, layer: int, given: Sequence[Values | None]) -> dict[int, Float32s]:
        """By label, what a layer reads of all known rows, in their order."""
        owned = self.known[self.owners[self.known] == self.number]
        pieces: list[tuple[Ints, Values]] = [(owned, self._inputs(layer).take(owned))]
        for values, places in zip(given, self.halo_places(len(given)), strict=True):
            pieces.append((self.halo[places], values or {}))
        inputs: dict[int, Float32s] = {}
        for label in range(len(self.plan.schema.labels)):
            known = self.known[self.labels[self.known] == label]
            inputs[label] = np.zeros((len(known), self._width(layer, label)), np.float32)
            for rows, values in pieces:
                if label in values:
                    at = np.searchsorted(known, rows[self.labels[rows] == label])
                    inputs[label][at] = values[label]
        return inputs

    def _width(self, layer: int, label: int) -> int:
        if layer == 0:
            return self.plan.widths[label]
        biases = self.plan.layers[layer - 1].biases
        return len(biases[label]) if label in biases else 0

    def _codes_heard(self, layer: int) -> list[int]:
        channels = self.plan.schema.channels
        return [code for at in self.plan.layers[layer].channels for code in channels[at].codes]

    def _local_graph(self, counts: Ints, sources: Ints, codes: NDArray[np.uint8]) -> InferenceGraph:
        """The entries of the wanted rows among the known ones, numbered as these stand."""
        size = len(self.known)
        lengths = np.zeros(size + 1, np.int64)
        lengths[np.searchsorted(self.known, self.wanted) + 1] = counts
        nobody, nothing = np.empty(0, np.int64), np.zeros(1, np.int64)
        types = len(self.plan.schema.relations)
        return InferenceGraph(
            np.cumsum(lengths), np.searchsorted(self.known, sources).astype(np.int32), codes,
            nobody, nothing, np.empty(0, np.int32), np.empty(0, np.uint8),
            size, np.zeros(types, np.bool_), np.zeros(size, np.int64), 0,
        )  # fmt: skip
