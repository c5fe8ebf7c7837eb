"""The graph's nodes and relationships as columns, and how what is new joins them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import GraphError
from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.connector.mirror.blocks import (
    AnyBlock,
    Picked,
    RawBlock,
    RelationshipBlock,
    TypedKeys,
)
from ringfence.connector.mirror.columns import Column
from ringfence.connector.mirror.first_read import FirstRead
from ringfence.connector.mirror.format import MAX_RELATIONSHIP_TYPES
from ringfence.connector.mirror.integer_keys import ABSENT
from ringfence.connector.mirror.key_index import Keys
from ringfence.connector.mirror.labels import CLASSIFIED, UNKNOWN, class_indices
from ringfence.connector.mirror.locks import Claim
from ringfence.connector.mirror.patches import SAME_FEATURES, Patches
from ringfence.connector.mirror.raw_table import RawTable
from ringfence.connector.mirror.related.tables import Related
from ringfence.connector.mirror.table import Table
from ringfence.connector.records import RejectedNode

UNUSABLE_KEY = "-"  # stands for a key that can't be used; no typed key looks like it
End = tuple[str, str, int]
"""A relationship by the keys of its source and target, and its type."""


@dataclass(slots=True)
class Mirror:
    """Columns of the graph as far as `watermark_ns`; row i of every node column is one node.

    `epoch` names this numbering of the nodes: a rebuilt mirror has another. `version` grows with
    every read that adds to it, also with one whose run never lives to save it. `evaluated` says
    which rows are not open: evaluated as far as run `seq`, members of the model `members_of`, or
    deleted. A deleted node leaves its row, without key, class and relationships. `patches` holds
    properties that changed after a node was read. `first_read` says how far a first read has come.
    `raw_counts` has by type how many relationships were read between nodes that are here, parallel
    ones too; `settled`, by type, between which two numbers the graph's count of those created
    before a time lies, and that time. `checked` is the row at which the next comparison with the
    graph begins, `members_checked` the calibration node. `tables` has a label's properties by its
    place in the mapping; `places` [n] says which record is a row's own, `revised` [n] at which
    version it was last written; both are empty where records stand at their rows. Context nodes are
    closed from the start: they are never evaluated. `gaps` has, by relation, how many relationships
    the graph counts that no read brings (their ends can't be used), `context_rejected` by label how
    many context nodes can't be used. `odd_relationships` lists some that have no usable creation
    time and were read all the same; `other_times` has rows whose key was read again with another
    creation time; they are compared. `incarnations`: which node of its key a row is, where known;
    `related`: by relation with columns, each of its relationships.
    """

    identity: str
    folder: Path
    epoch: str
    keys: Keys
    adjacency: Adjacency
    class_column: Column
    created_column: Column
    label_column: Column
    tables: tuple[Table, ...]
    patches: Patches
    version: int = 0
    watermark_ns: int | None = None
    seq: int = 0
    members_of: str = ""
    relationship_count: int = 0
    class_names: list[str] = field(default_factory=list)
    evaluated: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    dangling: list[End] = field(default_factory=list)
    rejected: dict[str, RejectedNode] = field(default_factory=dict)
    odd_relationships: list[RejectedNode] = field(default_factory=list)
    first_read: FirstRead = field(default_factory=FirstRead)
    raw_counts: dict[int, int] = field(default_factory=dict)
    settled: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    checked: int = 0
    members_checked: int = 0
    other_times: set[int] = field(default_factory=set)
    incarnations: dict[int, int] = field(default_factory=dict)
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    revised: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    gaps: dict[int, int] = field(default_factory=dict)
    context_rejected: dict[int, int] = field(default_factory=dict)
    related: Related = field(default_factory=Related)
    claim: Claim | None = None

    @property
    def size(self) -> int:
        """Number of rows: nodes, and the gaps that deleted ones left."""
        return len(self.keys)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which rows are nodes of the graph [n]."""
        return ~self.keys.gone

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return self.size - int(np.count_nonzero(self.keys.gone))

    @property
    def classes(self) -> NDArray[np.int32]:
        """Index into `class_names` [n]; UNKNOWN where the class was not known when it was read."""
        classes = self.class_column.array
        return np.where(self.keys.gone, UNKNOWN, classes) if self.keys.gone.any() else classes

    @property
    def created_ns(self) -> NDArray[np.int64]:
        """Creation times in nanoseconds [n]."""
        return self.created_column.array

    @property
    def labels(self) -> NDArray[np.uint8]:
        """The label of each row [n], by its place in the mapping; 0 is the classified one."""
        return self.label_column.array

    @property
    def has_raw_columns(self) -> bool:
        """Whether a model's encoders make the features, from columns as the graph has them."""
        return self.tables[CLASSIFIED].kind == RawTable.kind

    @property
    def width(self) -> int:
        """Numbers per node that a network takes as they are; 0 where encoders make them."""
        return self.tables[CLASSIFIED].width

    @property
    def features(self) -> NDArray[np.float32]:
        """Features [n, width], mapped: only rows that are used are read."""
        return self.tables[CLASSIFIED].features(self.size)

    def feature_rows(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a copy of the features of some rows; nothing else stays in memory."""
        return self.tables[CLASSIFIED].take(rows)

    def rows_of_label(self, label: int) -> NDArray[np.int64]:
        """Return the rows of one label's nodes, ascending; deleted ones left gaps."""
        return np.flatnonzero((self.labels == label) & self.present)

    def count(self, label: int) -> int:
        """Return how many nodes a label has."""
        return int(np.count_nonzero((self.labels == label) & self.present))

    def columns(self, label: int, rows: NDArray[np.int64]) -> dict[str, list[Any]]:
        """Return the raw values of some rows of a label by column, None where missing."""
        return self.tables[label].columns(self.places[rows])

    def places_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which record of its label's table is each row's own."""
        return self.places[rows] if len(self.places) else rows

    def release_pages(self) -> None:
        """Release the pages of the relationships' files; nothing is lost."""
        self.adjacency.release_pages()

    @property
    def edges(self) -> NDArray[np.int64]:
        """All relationships as (source, target, type) [3, E]; a copy, made at each call."""
        return self.adjacency.edges()

    @property
    def edge_count(self) -> int:
        """How many distinct relationships there are."""
        return self.adjacency.count

    def find(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return the row of each key; -1 where it isn't here."""
        return self.keys.find(keys)

    def node_keys(self) -> list[str]:
        """Return the keys of all nodes, in the order of their rows."""
        return self.keys.take(np.flatnonzero(self.present).tolist())

    def advance(self) -> None:
        """Begin a new version; what is added from now on belongs to it."""
        self.version = max(time.time_ns(), self.version + 1)

    def add_nodes(self, blocks: Sequence[AnyBlock]) -> NDArray[np.int64]:
        """Append the nodes that aren't here yet and return their rows."""
        first = self.size
        for block in blocks:
            if self.keys.gone.any() and self.keys.find_gone(block.keys):
                self.seq, self.members_of = 0, ""  # the evaluated flags are read again
            added = self.keys.append(block.keys) != ABSENT
            fresh: Picked = slice(None) if added.all() else added  # all are taken without a copy
            if not isinstance(fresh, slice) and block.label == CLASSIFIED:
                self._note_other_times(block, ~fresh)
            self.class_column.append(class_indices(self.class_names, block.classes)[fresh])
            self.created_column.append(block.created_ns[fresh])
            self._add_records(block, fresh)
            self._release(block.keys)
            self.rejected.update({bad.element_id: bad for bad in block.rejected})
        self.adjacency.grow(self.size, self.version)
        return np.arange(first, self.size)

    def _add_records(self, block: AnyBlock, fresh: Picked) -> None:
        """Write labels and properties of the nodes of a block that were not here before."""
        places = self.tables[block.label].append(block, fresh)
        self.places = np.append(self.places, places)
        self.revised = np.append(self.revised, np.full(len(places), self.version))
        added = self.size - len(self.evaluated)
        self.label_column.append(np.full(added, block.label, np.uint8))
        self.evaluated = np.append(self.evaluated, np.full(added, block.label != CLASSIFIED))

    def update_nodes(self, block: RawBlock) -> NDArray[np.int64]:
        """Write other properties for nodes that are here; return the rows that had others."""
        table = self.tables[block.label]
        if not isinstance(table, RawTable):
            raise TypeError("a table of vectors takes other properties by replace_nodes")
        rows = self.find(block.keys)
        here = np.flatnonzero(rows >= 0)
        changed, places = table.append_changed(self.places[rows[here]], block, here)
        rows = rows[here][changed]
        self.places[rows], self.revised[rows] = places, self.version
        return rows

    def _note_other_times(self, block: AnyBlock, known: NDArray[np.bool_]) -> None:
        """Note rows whose key came again with another creation time: it may be another node."""
        places = np.flatnonzero(known)
        rows = self.find([block.keys[place] for place in places.tolist()])
        here = rows < len(self.created_ns)  # a key may stand twice in one block
        other = self.created_ns[rows[here]] != block.created_ns[places[here]]
        self.other_times.update(rows[here][other].tolist())

    def replace_nodes(self, blocks: Sequence[AnyBlock]) -> None:
        """Write other properties, classes and times for nodes that are here.

        A node with another creation time may be another node: the evaluated flags are read again.
        """
        self.advance()
        for block in blocks:
            rows, classes = self.find(block.keys), class_indices(self.class_names, block.classes)
            moved = rows[self.created_ns[rows] != block.created_ns]
            if block.label == CLASSIFIED and len(moved):
                for row in moved.tolist():
                    self.incarnations.pop(row, None)
                self.seq, self.members_of, self.evaluated[moved] = 0, "", False
            features, versions = self._replace_properties(rows, block)
            self.patches.append(rows, versions, classes, block.created_ns, features)
            self._show(rows, classes, block.created_ns, features)

    def _replace_properties(
        self, rows: NDArray[np.int64], block: AnyBlock
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the features that a patch has for some rows; raw columns are written in place."""
        if isinstance(block, RawBlock):
            self.update_nodes(block)
            return np.empty((len(rows), 0), np.float32), np.full(len(rows), SAME_FEATURES)
        changed = self.tables[block.label].differs(rows, block)
        return block.features, np.where(changed, self.version, SAME_FEATURES)

    def show_patches(self) -> None:
        """Apply the patches to the columns' arrays; once, after both were opened."""
        patch = self.patches
        arrays = (patch.classes.array, patch.created.array, patch.features.array)
        self._show(patch.rows.array, *arrays)

    def _show(self, rows: NDArray[np.int64], *arrays: NDArray[Any]) -> None:
        shown = (self.class_column.show, self.created_column.show, self.tables[CLASSIFIED].show)
        for show, values in zip(shown, arrays, strict=True):
            if len(rows):
                show(rows, values)

    def remove_nodes(self, rows: NDArray[np.int64]) -> dict[int, int]:
        """Take nodes out with their relationships; return by type how many those were."""
        self.advance()
        self.adjacency.settle(self.version)
        gone = np.unique(rows)
        names = set(self.keys.take(gone.tolist()))
        removed = self.remove_relationships(self.adjacency.touching(gone))
        self.keys.remove(gone)
        self.evaluated[gone] = True
        self.dangling = [end for end in self.dangling if not names & {end[0], end[1]}]
        self.related.forget_waiting(names)
        return removed

    def remove_relationships(self, ends: NDArray[np.int64]) -> dict[int, int]:
        """Take relationships (source, target, type) [3, m] out; return by type how many."""
        removed = {}
        for kind in np.unique(ends[2]).tolist():
            source, target, kinds = ends[:, ends[2] == kind]
            removed[kind] = self.adjacency.remove(source, target, kinds, self.version)
            if kind in self.related:
                removed[kind] = self.related.remove_between(kind, source, target, self.version)
        return removed

    def add_relationships(self, blocks: list[RelationshipBlock]) -> int:
        """Append relationships; one whose end isn't here yet waits. Return how many are new."""
        before = self.edge_count
        for block in blocks:
            self.add_block(block)
        late, self.dangling = self.dangling, []
        for kind in sorted({entry[2] for entry in late}):
            ends = [(a, b) for a, b, type_index in late if type_index == kind]
            self.take_block(RelationshipBlock(kind, [a for a, _ in ends], [b for _, b in ends]))
        for late_block in self.related.take_waiting():
            self.add_block(late_block)
        self.adjacency.settle(self.version)
        self.dangling = sorted(set(self.dangling))
        return self.edge_count - before

    def add_ends(self, ends: NDArray[np.int64]) -> dict[int, int]:
        """Add relationships (source, target, type) [3, m] by rows; return by type how many."""
        kinds, counts = np.unique(ends[2], return_counts=True)
        for kind in kinds.tolist():
            source, target, _ = ends[:, ends[2] == kind]
            self.adjacency.add(source, target, kind, self.version)
        self.adjacency.settle(self.version)
        return dict(zip(kinds.tolist(), counts.tolist(), strict=True))

    def add_anchored(self, block: RelationshipBlock, step: int) -> None:
        """Add a block of all relationships of its anchors, and note that step of the read."""
        rows = self.add_block(block)
        if block.anchors is not None:
            rows = self.rows_of(block.anchors)
        self.first_read.note(rows[rows != ABSENT], step, self.size)

    def anchors_left(self, label: int, step: int) -> list[str]:
        """Return the keys of a label's nodes at which a first read lacks a step."""
        rows = self.first_read.rows_left(step, self.size)
        rows = rows[self.present[rows] & (self.labels[rows] == label)]
        return self.keys.take(rows.tolist())

    def add_block(self, block: RelationshipBlock) -> NDArray[np.int64]:
        """Add a block that has not been counted yet; return the rows of its sources."""
        (rows, joined), kind = self._take(block), block.type_index
        self.raw_counts[kind] = self.related.count(kind, self.raw_counts.get(kind, 0) + joined)
        return rows

    def take_block(self, block: RelationshipBlock) -> NDArray[np.int64]:
        """Add a block of a series that `add_relationships` ends; -1: a source isn't here yet."""
        return self._take(block)[0]

    def replace_relationships(self, blocks: Iterable[RelationshipBlock]) -> None:
        """Replace all relationships by these; only differences count as changed."""
        kept = self.adjacency
        kept.settle(self.version)
        self.forget_relationships()
        self.related.begin_sweep()
        for block in blocks:
            self.add_block(block)
        self.add_relationships([])
        self.raw_counts |= self.related.end_sweep(self.version)
        kept.grow(self.size, self.version)
        kept.adopt_content(self.adjacency, self.version)
        self.adjacency = kept

    def forget_relationships(self) -> None:
        """Drop all relationships; the files of the last save stay until the next one."""
        self.advance()
        self.adjacency = Adjacency.empty(self.folder, str(self.version))
        self.adjacency.grow(self.size, self.version)
        self.dangling, self.raw_counts = [], {}

    def _take(self, block: RelationshipBlock) -> tuple[NDArray[np.int64], int]:
        if block.type_index >= MAX_RELATIONSHIP_TYPES:
            raise GraphError(
                found=f"{block.type_index + 1} relationship types",
                needed=f"at most {MAX_RELATIONSHIP_TYPES} in [[graph.relationships]]",
            )
        rows, target = self.rows_of(block.sources), self.rows_of(block.targets)
        place = np.arange(len(rows))
        if block.counts is not None:
            place = np.repeat(place, block.counts)
        source = rows[place]
        here = (source != ABSENT) & (target != ABSENT)
        for at in np.flatnonzero(~here).tolist() if block.type_index not in self.related else ():
            ends = block.ends(int(place[at]), at)
            if ends is not None:
                self.dangling.append((*ends, block.type_index))
        self.adjacency.add(source[here], target[here], block.type_index, self.version)
        if block.type_index in self.related:
            self.related.take(block, np.stack([source, target]), self.adjacency, self.version)
        return rows, int(here.sum())

    def rows_of(self, keys: TypedKeys) -> NDArray[np.int64]:
        """Return the row of each key as it was read; -1 where it isn't here or can't be used."""
        if isinstance(keys, np.ndarray):
            return self.keys.find_integers(keys)
        return self.find([UNUSABLE_KEY if key is None else key for key in keys])

    def _release(self, keys: Sequence[str]) -> None:
        """A node that can be used now leaves the quarantine."""
        if self.rejected:
            now, before = set(keys), len(self.rejected)
            self.rejected = {i: bad for i, bad in self.rejected.items() if bad.node_key not in now}
            if len(self.rejected) < before:  # it may be a member that was not here to be marked
                self.members_of = ""
