"""One partition of a graph of several labels: the rows that it owns, and its share of each layer.

Rows stand in the order of the whole graph, so every list that is built here ascends as it does
there: the same kernels add the same numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import InferenceGraph
from ringfence.models.inference.partition.lists import OwnedLists
from ringfence.models.inference.partition.part import Allocate
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import NEVER_COMPUTED
from ringfence.models.inference.typed.forward import compute_layer
from ringfence.models.inference.typed.graph import typed_graph
from ringfence.models.inference.typed.plan import TypedPlan

__all__ = ["LabelledRows", "TypedPart", "TypedUpdate"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Values = Mapping[int, Float32s]
"""By label, numbers of some rows in their order."""


@dataclass(frozen=True, slots=True)
class TypedUpdate:
    """What changed at rows of one partition, all by their numbers in the whole graph.

    owners, labels: of nodes that joined since `nodes` were known · rows with offsets, others and
    codes: entries that are new or other than before, sorted by other and code · encoded: by label,
    rows with other columns and their numbers.
    """

    version: int
    nodes: int
    owners: NDArray[np.int16]
    labels: NDArray[np.uint8]
    rows: Ints
    offsets: Ints
    others: NDArray[np.int32]
    codes: NDArray[np.uint8]
    encoded: Mapping[int, tuple[Ints, Float32s]]

    @property
    def bytes(self) -> int:
        """How much of it goes to the partition."""
        plain = (self.owners, self.labels, self.rows, self.offsets, self.others, self.codes)
        wide = [one for pair in self.encoded.values() for one in pair]
        return sum(int(one.nbytes) for one in (*plain, *wide))


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
        labels, found = self.labels[at], {}
        for label in np.unique(labels).tolist():
            places = np.cumsum(self.labels == label) - 1
            found[label] = np.ascontiguousarray(self.arrays[label][places[at[labels == label]]])
        return found


@dataclass(slots=True)
class TypedPart:
    """Owned rows ascend by their number in the whole graph; new ones are the highest.

    others, codes: the entries of each owned row · encoded: by label, columns of the owned rows ·
    inputs: by layer, what it is given of owned rows; the first gets the encoded columns.
    """

    number: int
    plan: TypedPlan
    allocate: Allocate
    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    owners: NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))
    labels: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    others: OwnedLists = field(default_factory=OwnedLists)
    codes: OwnedLists = field(default_factory=OwnedLists)
    version: int = NEVER_COMPUTED
    inputs: dict[int, LabelledRows] = field(default_factory=dict)
    wanted: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    near: InferenceGraph | None = None
    known: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    halo: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def encoded(self, label: int) -> Float32s:
        """Columns of the owned rows of a label."""
        rows = int((self.labels[self.rows] == label).sum())
        return self.allocate(f"encoded.{label}", (rows, self.plan.widths[label]), np.float32)

    def update(self, update: TypedUpdate) -> None:
        """Take changes in."""
        if update.nodes != len(self.owners):
            raise ValueError(f"{len(self.owners)} nodes are known here, not {update.nodes}")
        self.owners = np.concatenate([self.owners, update.owners])
        self.labels = np.concatenate([self.labels, update.labels])
        joined = np.flatnonzero(update.owners == self.number) + update.nodes
        self.rows = np.concatenate([self.rows, joined])
        places = self._places_of(update.rows)
        for lists, values in ((self.others, update.others), (self.codes, update.codes)):
            if lists.replace(places, update.offsets, values.astype(np.int32)):
                lists.rest_on(*lists.merged(len(self.rows)))
        labels = self.labels[self.rows]
        for label, (rows, columns) in update.encoded.items():
            at = np.searchsorted(self.rows[labels == label], rows)
            self.encoded(label)[at] = columns
        self.version = update.version
        self.inputs = {}

    def needs(self, number: int, rows: Ints, parts: int) -> list[Ints]:
        """Return the rows of others that a layer at some owned rows reads, by their owner."""
        self.wanted, near = rows, self.others.take(self._places_of(rows))
        codes = self.codes.take(near.rows).sources
        heard = np.isin(codes, self._codes_heard(number))
        before = np.concatenate([[0], np.cumsum(heard)])
        counts = before[near.offsets[1:]] - before[near.offsets[:-1]]
        sources = near.sources[heard].astype(np.int64)
        self.known = np.union1d(rows, sources)
        self.near = self._local_graph(rows, counts, sources, codes[heard].astype(np.uint8))
        by = self.owners[self.known]
        self.halo = self.known[by != self.number]
        return [
            self.halo[self.owners[self.halo] == owner] if owner != self.number else rows[:0]
            for owner in range(parts)
        ]

    def give(self, number: int, rows: Ints) -> dict[int, Float32s]:
        """Return what a layer is given of some owned rows, by label."""
        return self._inputs(number).take(rows)

    def compute(self, number: int, given: Sequence[Values], pool: Pool) -> int:
        """Compute a layer at the rows that it was asked for; return how many."""
        if self.near is None:
            raise ValueError("a layer is computed after its needs were told")
        graph = typed_graph(self.near, self.plan.schema, self.labels[self.known])
        inputs = self._known_inputs(number, given)
        at = np.searchsorted(self.known, self.wanted)
        labels, found = self.labels[self.wanted], {}
        for label in np.unique(labels).tolist():
            found[label] = compute_layer(
                self.plan, graph, number, label, at[labels == label], inputs, pool
            )
        self.inputs[number + 1] = LabelledRows(self.wanted, labels, found)
        self.near = None
        return len(self.wanted)

    def outputs(self, rows: Ints, label: int) -> Float32s:
        """Return what the last layer gave at some owned rows of the classified label."""
        nothing = np.empty((0, self.plan.classes), np.float32)
        return self._inputs(len(self.plan.layers)).take(rows).get(label, nothing)

    def _inputs(self, number: int) -> LabelledRows:
        if number == 0 and 0 not in self.inputs:
            arrays = {label: self.encoded(label) for label in range(len(self.plan.schema.labels))}
            self.inputs[0] = LabelledRows(self.rows, self.labels[self.rows], arrays)
        return self.inputs[number]

    def _known_inputs(self, number: int, given: Sequence[Values]) -> dict[int, Float32s]:
        """By label, what a layer is given of all known rows, in their order."""
        own = self.known[self.owners[self.known] == self.number]
        pieces: list[tuple[Ints, Values]] = [(own, self._inputs(number).take(own))]
        by = self.owners[self.halo]
        pieces += [(self.halo[by == owner], values) for owner, values in enumerate(given)]
        found: dict[int, Float32s] = {}
        for label in range(len(self.plan.schema.labels)):
            mine = self.known[self.labels[self.known] == label]
            found[label] = np.zeros((len(mine), self._width(number, label)), np.float32)
            for rows, values in pieces:
                if label in values:
                    at = np.searchsorted(mine, rows[self.labels[rows] == label])
                    found[label][at] = values[label]
        return found

    def _width(self, number: int, label: int) -> int:
        if number == 0:
            return self.plan.widths[label]
        biases = self.plan.layers[number - 1].biases
        return len(biases[label]) if label in biases else 0

    def _codes_heard(self, number: int) -> list[int]:
        channels = self.plan.schema.channels
        return [code for at in self.plan.layers[number].channels for code in channels[at].codes]

    def _local_graph(
        self, rows: Ints, counts: Ints, sources: Ints, codes: NDArray[np.uint8]
    ) -> InferenceGraph:
        """The entries of some rows among the known ones, numbered as these stand."""
        size = len(self.known)
        lengths = np.zeros(size + 1, np.int64)
        lengths[np.searchsorted(self.known, rows) + 1] = counts
        nobody, nothing = np.empty(0, np.int64), np.zeros(1, np.int64)
        types = len(self.plan.schema.relations)
        return InferenceGraph(
            np.cumsum(lengths), np.searchsorted(self.known, sources).astype(np.int32), codes,
            nobody, nothing, np.empty(0, np.int32), np.empty(0, np.uint8),
            size, np.zeros(types, np.bool_), np.zeros(size, np.int64), 0,
        )  # fmt: skip

    def _places_of(self, rows: Ints) -> Ints:
        places = np.searchsorted(self.rows, rows)
        if len(rows) and not (
            places[-1] < len(self.rows) and np.array_equal(self.rows[places], rows)
        ):
            raise ValueError(f"partition {self.number} does not own all of these rows")
        return places
