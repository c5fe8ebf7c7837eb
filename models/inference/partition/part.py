"""One partition: the rows that it owns, and its share of each layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.changes import alone
from ringfence.models.inference.graph import Incoming
from ringfence.models.inference.layers.appnp import APPNPPlan
from ringfence.models.inference.layers.base import InferencePlan, MessagePlan
from ringfence.models.inference.messages import degree_scale, messages_of
from ringfence.models.inference.partition.lists import OwnedLists
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import NEVER_COMPUTED, Tables

__all__ = ["Given", "Part", "PartUpdate"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Given = tuple[Float32s, Float32s]
"""Rows of a table, and the scales of their nodes."""

Allocate = Callable[[str, tuple[int, ...], type[np.generic]], NDArray[Any]]
"""Gives the array of a name with so many rows; rows that it had before keep what they held."""

TableName = Literal["first", "second", "walk"]
Whose = Literal["stale", "wanted", "all"]
ROWS_AT_ONCE = 16_384  # of a layer; scratch stays small


@dataclass(frozen=True, slots=True)
class PartUpdate:
    """What changed at rows of one partition, all by their numbers in the whole graph.

    rows int64, ascending, with offsets and sources: lists that are new or other than before ·
    feature_rows, features: likewise · owners int16: the owners of nodes that joined the graph since
    `nodes` of them were known.
    """

    version: int
    nodes: int
    owners: NDArray[np.int16]
    rows: Ints
    offsets: Ints
    sources: NDArray[np.int32]
    feature_rows: Ints
    features: Float32s

    @property
    def bytes(self) -> int:
        """How much of it goes to the partition."""
        arrays = (
            self.owners, self.rows, self.offsets, self.sources, self.feature_rows, self.features,
        )  # fmt: skip
        return sum(int(one.nbytes) for one in arrays)


@dataclass(slots=True)
class Part:
    """Owned rows ascend by their number in the whole graph; new ones are the highest.

    Arrays have a row per owned node: features, first and second table, scale, computed. The tables
    have rows after those of the owned nodes for the halo of the layer that is computed.
    """

    number: int
    plan: InferencePlan
    allocate: Allocate
    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    owners: NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))
    lists: OwnedLists = field(default_factory=OwnedLists)
    version: int = NEVER_COMPUTED
    looked_at: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    stale: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    wanted: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    halo: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    walk: Float32s = field(default_factory=lambda: np.empty((0, 0), np.float32))
    walk_lists: Incoming | None = None

    def array(self, name: str, halo: int = 0) -> NDArray[Any]:
        """One of the arrays, with room for so many rows of a halo."""
        widths: dict[str, tuple[int, ...]] = {
            "features": (len(self.plan.mean),),
            "first": (self.plan.first_width,),
            "second": (self.plan.second_width,),
        }
        kind = np.int64 if name == "computed" else np.float32
        return self.allocate(name, (len(self.rows) + halo, *widths.get(name, ())), kind)

    def update(self, update: PartUpdate) -> None:
        """Take changes in, and bring the first table up to date with them."""
        if update.nodes != len(self.owners):
            raise ValueError(f"{len(self.owners)} nodes are known here, not {update.nodes}")
        self.owners = np.concatenate([self.owners, update.owners])
        joined = np.flatnonzero(update.owners == self.number) + update.nodes
        if len(joined):
            before = len(self.rows)
            self.rows = np.concatenate([self.rows, joined])
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
        """Let the base go on with lists of the rows behind it: a partition that is filled."""
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

    def places_of(self, rows: Ints) -> Ints:
        """Where rows of the whole graph stand among the owned ones; all must be owned."""
        places = np.searchsorted(self.rows, rows)
        if len(rows) and not (
            places[-1] < len(self.rows) and np.array_equal(self.rows[places], rows)
        ):
            raise ValueError(f"partition {self.number} does not own all of these rows")
        return places

    def mark_stale(self, rows: Ints, newest: Ints) -> int:
        """Note which of these rows must be made again; return how many."""
        self.looked_at = self.places_of(rows)
        made = self.array("computed")[self.looked_at]
        self.stale = self.looked_at[(made == NEVER_COMPUTED) | (made < newest)]
        return len(self.stale)

    def mark_computed(self) -> None:
        """Note that the rows which were looked at are right now."""
        self.array("computed")[self.looked_at] = self.version

    def want(self, rows: Ints) -> None:
        """Note whose outputs are wanted."""
        self.wanted = self.places_of(rows)

    def needs(self, whose: Whose, parts: int) -> list[Ints]:
        """Return the rows of others that a layer at some owned rows reads, by their owner."""
        marks = np.zeros(len(self.owners), np.bool_)
        for block in self._blocks(self._chosen(whose)):
            marks[block.sources] = True
        marks[self.rows] = False
        self.halo = np.flatnonzero(marks)
        by = self.owners[self.halo]
        return [self.halo[by == owner] for owner in range(parts)]

    def give(self, table: TableName, rows: Ints) -> Given:
        """Return rows of a table, and the scales of their nodes."""
        places = self.places_of(rows)
        held = self.walk if table == "walk" else self.array(table)
        return np.ascontiguousarray(held[places]), np.ascontiguousarray(self.array("scale")[places])

    def compute_second(self, given: Sequence[Given], pool: Pool) -> int:
        """Compute the first layer at the stale rows; return how many."""
        if not len(self.stale):
            return 0
        if not self.plan.first_width:
            tables = self._tables(0)
            for start in range(0, len(self.stale), ROWS_AT_ONCE):
                rows = self.stale[start : start + ROWS_AT_ONCE]
                self.plan.second_rows(alone(rows), self.array("features"), tables, pool)
            return len(self.stale)
        self._take("first", given)
        tables, features = self._tables(len(self.halo)), self.array("features")
        for block in self._blocks(self.stale):
            self.plan.second_rows(self._local(block), features, tables, pool)
        return len(self.stale)

    def outputs(self, given: Sequence[Given], pool: Pool) -> Float32s:
        """Return the outputs at the wanted rows [m, classes]."""
        if not self.plan.first_width:
            return self.plan.outputs(
                alone(self.wanted), self.array("scale"), self.array("second"), pool
            )
        self._take("second", given)
        scale, second = (self.array(name, len(self.halo)) for name in ("scale", "second"))
        nothing = np.empty((0, self.plan.classes), np.float32)
        blocks = (self._local(block) for block in self._blocks(self.wanted))
        found = [self.plan.outputs(block, scale, second, pool) for block in blocks]
        return np.concatenate([nothing, *found])

    def begin_walk(self) -> None:
        """Let APPNP's walk begin with what the perceptron said of the owned rows."""
        self.walk = self.array("second").copy()
        self.walk_lists = self._local(self.lists.take(np.arange(len(self.rows))))

    def step(self, given: Sequence[Given], pool: Pool) -> None:
        """Take one step of the walk at all owned rows."""
        if not isinstance(self.plan, APPNPPlan) or self.walk_lists is None:
            raise TypeError(f"{type(self.plan).__name__} does not walk, or has not begun to")
        owned = len(self.rows)
        scale = self.array("scale", len(self.halo))
        before = np.empty((owned + len(self.halo), self.walk.shape[1]), np.float32)
        before[:owned] = self.walk
        for (values, scales), places in zip(given, self._pieces(len(given)), strict=True):
            before[owned + places], scale[owned + places] = values, scales
        after = np.empty_like(self.walk)
        self.plan.step(self.walk_lists, scale, self.array("second"), before, after, pool)
        self.walk = after

    def walked(self) -> Float32s:
        """Return where the walk has come at the wanted rows [m, classes]."""
        return self.walk[self.wanted]

    def _chosen(self, whose: Whose) -> Ints:
        if whose == "all":
            return np.arange(len(self.rows))
        return self.stale if whose == "stale" else self.wanted

    def _blocks(self, rows: Ints) -> Iterator[Incoming]:
        return (
            self.lists.take(rows[start : start + ROWS_AT_ONCE])
            for start in range(0, len(rows), ROWS_AT_ONCE)
        )

    def _local(self, near: Incoming) -> Incoming:
        """Lists with places here in the place of numbers: owned rows first, then the halo."""
        sources = near.sources.astype(np.int64)
        own = self.owners[sources] == self.number
        places = np.where(
            own,
            np.searchsorted(self.rows, sources),
            len(self.rows) + np.searchsorted(self.halo, sources),
        )
        return Incoming(near.rows, near.offsets, places.astype(np.int32))

    def _pieces(self, parts: int) -> list[Ints]:
        by = self.owners[self.halo]
        return [np.flatnonzero(by == owner) for owner in range(parts)]

    def _take(self, table: TableName, given: Sequence[Given]) -> None:
        """Put the halo's rows behind the owned ones."""
        owned, halo = len(self.rows), len(self.halo)
        rows, scale = self.array(table, halo), self.array("scale", halo)
        for (values, scales), places in zip(given, self._pieces(len(given)), strict=True):
            rows[owned + places], scale[owned + places] = values, scales

    def _tables(self, halo: int) -> Tables:
        """Tables as the layers take them; no sums are kept here."""
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
