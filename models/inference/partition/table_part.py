"""One partition for networks with one list of neighbours per node (GCN, SAGE, GAT, APPNP, MLP).

Layer 0 makes rows of the second table, which are kept from pass to pass; layer 1 makes the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.changes import without_neighbours
from ringfence.models.inference.graph import InNeighbours
from ringfence.models.inference.layers.appnp import APPNPPlan
from ringfence.models.inference.layers.base import InferencePlan, MessagePlan
from ringfence.models.inference.messages import degree_scale, messages_of
from ringfence.models.inference.partition.base import Part, PartUpdate
from ringfence.models.inference.partition.lists import OwnedLists
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import NEVER_COMPUTED, Tables

__all__ = ["Given", "TablePart", "TableUpdate"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Given = tuple[Float32s, Float32s]
"""Rows of a table, and the scales of their nodes."""

TABLES = ("features", "first", "second", "scale", "computed")
READ_BY_LAYER = ("first", "second")  # the table that a layer reads of neighbours
ROWS_AT_ONCE = 16_384  # of a layer; scratch stays small


@dataclass(frozen=True, slots=True)
class TableUpdate(PartUpdate):
    """What changed: incoming neighbours of `rows`, and features of `feature_rows`."""

    sources: NDArray[np.int32]
    feature_rows: Ints
    features: Float32s


@dataclass(slots=True)
class TablePart(Part[InferencePlan]):
    """Arrays have a row per owned node: features, first and second table, scale, computed.

    The tables have rows after those of the owned nodes for the halo of the current layer. asked:
    places of the rows that a layer was asked for; stale: of those at which it is computed; results:
    the outputs at the asked rows.
    """

    lists: OwnedLists = field(default_factory=OwnedLists)
    asked: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    stale: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    results: Float32s = field(default_factory=lambda: np.empty((0, 0), np.float32))
    walk_lists: InNeighbours | None = None

    def array(self, name: str, halo: int = 0) -> NDArray[Any]:
        """One of the arrays, with room for so many rows of a halo."""
        widths: dict[str, tuple[int, ...]] = {
            "features": (len(self.plan.mean),),
            "first": (self.plan.first_width,),
            "second": (self.plan.second_width,),
        }
        kind = np.int64 if name == "computed" else np.float32
        return self.allocate(name, (len(self.rows) + halo, *widths.get(name, ())), kind)

    def update(self, update: TableUpdate) -> None:
        """Take changes in, and bring the first table up to date with them."""
        before = len(self.rows)
        self.join(update)
        self.array("features")
        self.array("computed")[before:] = NEVER_COMPUTED
        places = self.places_of(update.rows)
        if self.lists.follow_base(places):
            self._append_lists(update.offsets, update.sources)
        elif self.lists.replace(places, update.offsets, update.sources):
            self.rest_on(*self.lists.merged(len(self.rows)))
        altered = self.places_of(update.feature_rows)
        self.array("features")[altered] = update.features
        self.array("scale")[places] = degree_scale(np.diff(update.offsets))
        again = np.union1d(altered, places) if isinstance(self.plan, MessagePlan) else altered
        self._fill_first(again)
        self.version = update.version

    def _append_lists(self, offsets: Ints, sources: NDArray[np.int32]) -> None:
        """Append lists of new rows to the base, while a partition is being filled."""
        lists = self.lists
        rows, entries = len(lists.offsets), len(lists.sources)
        ends = self.allocate("offsets", (rows + len(offsets) - 1,), np.int64)
        if rows == 1:
            ends[0] = 0
        ends[rows:] = offsets[1:] + entries
        numbers = self.allocate("sources", (entries + len(sources),), np.int32)
        numbers[entries:] = sources
        lists.rest_on(ends, numbers)

    def rest_on(self, offsets: Ints, sources: NDArray[np.int32]) -> None:
        """Put lists where arrays are kept."""
        kept = self.allocate("offsets", offsets.shape, np.int64)
        kept[:] = offsets
        numbers = self.allocate("sources", sources.shape, np.int32)
        numbers[:] = sources
        self.lists.rest_on(kept, numbers)

    def needs(self, layer: int, rows: Ints | None = None, newest: Ints | None = None) -> None:
        """Choose the rows at which a layer is computed, and find its halo; begin APPNP's walk."""
        self.asked = np.arange(len(self.rows)) if rows is None else self.places_of(rows)
        self.stale = self.asked if newest is None else self._made_before(newest)
        walks = self._walks(layer)
        marks = np.zeros(len(self.owners), np.bool_)
        if self.plan.first_width or walks:
            for block in self._blocks(self.stale):
                marks[block.sources] = True
        marks[self.rows] = False
        self.halo = np.flatnonzero(marks)
        if walks:
            self.results = self.array("second").copy()
            self.walk_lists = self._local(self.lists.take(self.asked))

    def give(self, layer: int, rows: Ints) -> Given:
        """Return rows of the table that a layer reads, and the scales of their nodes."""
        places = self.places_of(rows)
        held = self.results if self._walks(layer) else self.array(READ_BY_LAYER[layer])
        return np.ascontiguousarray(held[places]), np.ascontiguousarray(self.array("scale")[places])

    def compute(self, layer: int, given: Sequence[Given | None], pool: Pool) -> int:
        """Make stale rows of the second table, or the outputs, or one step of APPNP's walk."""
        if layer == 0:
            self._compute_second(given, pool)
            self.array("computed")[self.asked] = self.version
        elif self._walks(layer):
            self._step(given, pool)
        else:
            self.results = self._compute_outputs(given, pool)
        return len(self.stale)

    def outputs(self, rows: Ints) -> Float32s:
        """Return the outputs at some owned rows [m, classes]."""
        return self.results[np.searchsorted(self.asked, self.places_of(rows))]

    def forget_pass(self) -> None:
        """Drop outputs, and the lists of a walk."""
        self.results, self.walk_lists = np.empty((0, 0), np.float32), None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return owned rows, lists and tables by name."""
        tables = {name: self.array(name) for name in TABLES}
        return {"rows": self.rows, "owners": self.owners, **self.lists.arrays(), **tables}

    def restore(self, arrays: Mapping[str, NDArray[Any]], version: int) -> None:
        """Go on with these arrays; the tables are mapped by their names when they are read."""
        self.rows, self.owners = arrays["rows"].copy(), arrays["owners"].copy()
        self.lists, self.version = OwnedLists.from_arrays(arrays), version

    def _walks(self, layer: int) -> bool:
        return layer == 1 and self.plan.reaches_everyone

    def _made_before(self, newest: Ints) -> Ints:
        """Those of the asked rows that were made before their newest input, or never."""
        made: Ints = self.array("computed")[self.asked]
        stale: Ints = self.asked[(made == NEVER_COMPUTED) | (made < newest)]
        return stale

    def _compute_second(self, given: Sequence[Given | None], pool: Pool) -> None:
        """Compute the first layer at the stale rows."""
        if not self.plan.first_width:
            tables = self._tables(0)
            for start in range(0, len(self.stale), ROWS_AT_ONCE):
                rows = self.stale[start : start + ROWS_AT_ONCE]
                self.plan.second_rows(
                    without_neighbours(rows), self.array("features"), tables, pool
                )
            return
        self._take(self.array("first", len(self.halo)), given)
        tables, features = self._tables(len(self.halo)), self.array("features")
        for block in self._blocks(self.stale):
            self.plan.second_rows(self._local(block), features, tables, pool)

    def _compute_outputs(self, given: Sequence[Given | None], pool: Pool) -> Float32s:
        """Return the outputs at the stale rows [m, classes]."""
        if not self.plan.first_width:
            return self.plan.outputs(
                without_neighbours(self.stale), self.array("scale"), self.array("second"), pool
            )
        scale, second = (self.array(name, len(self.halo)) for name in ("scale", "second"))
        self._take(second, given)
        nothing = np.empty((0, self.plan.classes), np.float32)
        blocks = (self._local(block) for block in self._blocks(self.stale))
        outputs = [self.plan.outputs(block, scale, second, pool) for block in blocks]
        return np.concatenate([nothing, *outputs])

    def _step(self, given: Sequence[Given | None], pool: Pool) -> None:
        """Take one step of APPNP's walk at all owned rows."""
        if not isinstance(self.plan, APPNPPlan) or self.walk_lists is None:
            raise TypeError(f"{type(self.plan).__name__} does not walk, or has not begun to")
        owned = len(self.rows)
        before = np.empty((owned + len(self.halo), self.results.shape[1]), np.float32)
        before[:owned] = self.results
        self._take(before, given)
        scale, after = self.array("scale", len(self.halo)), np.empty_like(self.results)
        self.plan.step(self.walk_lists, scale, self.array("second"), before, after, pool)
        self.results = after

    def _blocks(self, rows: Ints) -> Iterator[InNeighbours]:
        return (
            self.lists.take(rows[start : start + ROWS_AT_ONCE])
            for start in range(0, len(rows), ROWS_AT_ONCE)
        )

    def _local(self, near: InNeighbours) -> InNeighbours:
        """Lists with places here in the place of numbers: owned rows first, then the halo."""
        sources = near.sources.astype(np.int64)
        is_owned = self.owners[sources] == self.number
        places = np.where(
            is_owned,
            np.searchsorted(self.rows, sources),
            len(self.rows) + np.searchsorted(self.halo, sources),
        )
        return InNeighbours(near.rows, near.offsets, places.astype(np.int32))

    def _take(self, rows: Float32s, given: Sequence[Given | None]) -> None:
        """Put the halo's rows and scales behind those of the owned rows."""
        owned, scale = len(self.rows), self.array("scale", len(self.halo))
        for owner_rows, places in zip(given, self.halo_places(len(given)), strict=True):
            if owner_rows is not None:
                rows[owned + places], scale[owned + places] = owner_rows

    def _tables(self, halo: int) -> Tables:
        """Tables in the form that layers take; no sums are kept here."""
        slots = len(self.rows) + halo if isinstance(self.plan, MessagePlan) else 0
        return Tables(
            self.array("first", halo), self.array("second", halo), self.array("scale", halo),
            self.array("computed"), np.zeros(slots, np.int32),
            np.empty((0, self.plan.first_width)), np.empty(0, np.uint64),
        )  # fmt: skip

    def _fill_first(self, places: Ints) -> None:
        if not self.plan.first_width:
            return
        first, features, scale = (self.array(name) for name in ("first", "features", "scale"))
        for start in range(0, len(places), ROWS_AT_ONCE):
            rows = places[start : start + ROWS_AT_ONCE]
            if isinstance(self.plan, MessagePlan):
                first[rows] = messages_of(self.plan, features[rows], scale[rows])
            else:
                first[rows] = self.plan.first(features[rows])
