"""The graph's nodes and relationships as columns, and how what is new joins them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import GraphError
from ringfence.connector.files import make_private_folder
from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.connector.mirror.columns import Column
from ringfence.connector.mirror.format import MAX_RELATIONSHIP_TYPES
from ringfence.connector.mirror.integer_keys import ABSENT
from ringfence.connector.mirror.key_index import Keys
from ringfence.connector.mirror.locks import Claim, claim
from ringfence.connector.mirror.patches import SAME_FEATURES, Patches
from ringfence.connector.neo4j.read.columns import NodeBlock
from ringfence.connector.neo4j.read.incremental import RelationshipBlock, TypedKeys
from ringfence.connector.records import RejectedNode

if TYPE_CHECKING:
    from ringfence.connector.mirror.typed import TypedMirror

UNKNOWN = -1
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
    properties that changed after a node was read.
    `sources_read` [n or fewer] says, during a first read, how many relationship types of each node
    have been read. `raw_counts` has by type how many relationships were read between nodes that are
    here, parallel ones too (None: not known); `settled`, by type, between which two numbers the
    graph's count of those created before a time lies, and that time. `checked` is the row at which
    the next comparison with the graph begins, `members_checked` the calibration node.
    `typed` has labels and raw columns where the project has several labels.
    `odd_relationships` lists some that have no usable creation time and were read all the same;
    `other_times` has rows whose key was read again with another creation time; they are compared.
    """

    identity: str
    width: int
    folder: Path
    epoch: str
    keys: Keys
    adjacency: Adjacency
    class_column: Column
    created_column: Column
    feature_column: Column
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
    sources_read: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    raw_counts: dict[int, int] | None = field(default_factory=dict)
    settled: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    checked: int = 0
    members_checked: int = 0
    other_times: set[int] = field(default_factory=set)
    claim: Claim | None = None
    typed: TypedMirror | None = None

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
        found = self.class_column.array
        return np.where(self.keys.gone, UNKNOWN, found) if self.keys.gone.any() else found

    @property
    def created_ns(self) -> NDArray[np.int64]:
        """Creation times in nanoseconds [n]."""
        return self.created_column.array

    @property
    def features(self) -> NDArray[np.float32]:
        """Features [n, width], mapped: only rows that are used are read."""
        return self.feature_column.array

    def feature_rows(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a copy of the features of some rows; nothing else stays in memory."""
        return self.feature_column.take(rows)

    def release_pages(self) -> None:
        """Let go of pages of the relationships' files that were looked at; nothing is lost."""
        for column in (self.adjacency.offsets, self.adjacency.others, self.adjacency.codes):
            column.release()

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

    def add_nodes(self, blocks: list[NodeBlock]) -> NDArray[np.int64]:
        """Append the nodes that aren't here yet and return their rows."""
        first = self.size
        for block in blocks:
            if self.keys.gone.any() and self.keys.find_gone(block.keys):
                self.seq, self.members_of = 0, ""  # who is evaluated is asked anew
            fresh = _picked(self.keys.append(block.keys) != ABSENT)
            if not isinstance(fresh, slice):
                self._note_other_times(block, ~fresh)
            self.class_column.append(self._class_indices(block.classes)[fresh])
            self.created_column.append(block.created_ns[fresh])
            self.feature_column.append(block.features[fresh])
            self._release(block.keys)
            self.rejected.update({bad.element_id: bad for bad in block.rejected})
        added = self.size - first
        self.evaluated = np.append(self.evaluated, np.zeros(added, np.bool_))
        self.adjacency.grow(self.size, self.version)
        return np.arange(first, self.size)

    def _note_other_times(self, block: NodeBlock, known: NDArray[np.bool_]) -> None:
        """Note rows whose key came again with another creation time: it may be another node."""
        places = np.flatnonzero(known)
        rows = self.find([block.keys[place] for place in places.tolist()])
        here = rows < len(self.created_ns)  # a key may stand twice in one block
        other = self.created_ns[rows[here]] != block.created_ns[places[here]]
        self.other_times.update(rows[here][other].tolist())

    def replace_nodes(self, blocks: list[NodeBlock]) -> None:
        """Write other properties for nodes that are here.

        A node with another creation time may be another one: who is evaluated is asked anew.
        """
        self.advance()
        for block in blocks:
            rows = self.find(block.keys)
            same = (self.features[rows] == block.features).all(axis=1)
            versions = np.where(same, SAME_FEATURES, self.version)
            classes = self._class_indices(block.classes)
            if len(moved := rows[self.created_ns[rows] != block.created_ns]):
                self.evaluated[moved] = False
                self.seq, self.members_of = 0, ""
            self.patches.rows.append(rows)
            self.patches.versions.append(versions)
            self.patches.classes.append(classes)
            self.patches.created.append(block.created_ns)
            self.patches.features.append(block.features)
            self._show(rows, classes, block.created_ns, block.features)

    def show_patches(self) -> None:
        """Let the columns' arrays have what the patches say; once, after both were opened."""
        patch = self.patches
        arrays = (patch.classes.array, patch.created.array, patch.features.array)
        self._show(patch.rows.array, *arrays)

    def _show(self, rows: NDArray[np.int64], *arrays: NDArray[Any]) -> None:
        columns = (self.class_column, self.created_column, self.feature_column)
        for column, values in zip(columns, arrays, strict=True):
            if len(rows):
                column.show(rows, values)

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
        return removed

    def remove_relationships(self, ends: NDArray[np.int64]) -> dict[int, int]:
        """Take relationships (source, target, type) [3, m] out; return by type how many."""
        removed = {}
        for kind in np.unique(ends[2]).tolist():
            source, target, kinds = ends[:, ends[2] == kind]
            removed[kind] = self.adjacency.remove(source, target, kinds, self.version)
        return removed

    def add_relationships(self, blocks: list[RelationshipBlock]) -> int:
        """Append relationships; one whose end isn't here yet waits. Return how many are new."""
        before = self.edge_count
        for block in blocks:
            self.add_block(block)
        late, self.dangling = self.dangling, []
        for kind in sorted({one[2] for one in late}):
            part = [one for one in late if one[2] == kind]
            self.take_block(
                RelationshipBlock(kind, [a for a, _, _ in part], [b for _, b, _ in part])
            )
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

    def add_sources(self, block: RelationshipBlock) -> None:
        """Take in a block that holds all that start at its sources, and note that it was read."""
        rows = self.add_block(block)
        missing = self.size - len(self.sources_read)
        self.sources_read = np.append(self.sources_read, np.zeros(missing, np.uint8))
        rows = rows[rows != ABSENT]
        self.sources_read[rows[self.sources_read[rows] == block.type_index]] += 1

    def sources_left(self, type_index: int) -> list[str]:
        """Return the keys of the nodes whose relationships of a type a first read still lacks."""
        done = self.sources_read > type_index
        rows = np.append(np.flatnonzero(~done), np.arange(len(done), self.size))
        return self.keys.take(rows[self.present[rows]].tolist())

    def add_block(self, block: RelationshipBlock) -> NDArray[np.int64]:
        """Take one block of relationships in that have not been counted yet; see `take_block`."""
        rows, joined = self._take(block)
        if self.raw_counts is not None:
            self.raw_counts[block.type_index] = self.raw_counts.get(block.type_index, 0) + joined
        return rows

    def take_block(self, block: RelationshipBlock) -> NDArray[np.int64]:
        """Take one block in and return its sources' rows (-1: not here yet).

        `add_relationships` without blocks ends a series of them.
        """
        return self._take(block)[0]

    def replace_relationships(self, blocks: Iterable[RelationshipBlock]) -> None:
        """Come to hold these relationships and no others; only what differs counts as changed."""
        kept = self.adjacency
        kept.settle(self.version)
        self.forget_relationships()
        for block in blocks:
            self.add_block(block)
        self.add_relationships([])
        kept.take_over(self.adjacency, self.version)
        self.adjacency = kept

    def forget_relationships(self) -> None:
        """Begin anew with no relationships; the files of the last save stay until the next one."""
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
        for at in np.flatnonzero(~here).tolist():
            ends = block.ends(int(place[at]), at)
            if ends is not None:
                self.dangling.append((*ends, block.type_index))
        self.adjacency.add(source[here], target[here], block.type_index, self.version)
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

    def _class_indices(self, names: Sequence[str | None]) -> NDArray[np.int32]:
        """Indices into `class_names`, which names that are new to it join."""
        known: dict[str | None, int] = {name: i for i, name in enumerate(self.class_names)}
        known[None] = UNKNOWN
        for name in dict.fromkeys(names):
            if name is not None and name not in known:
                known[name] = len(self.class_names)
                self.class_names.append(name)
        return np.fromiter(map(known.__getitem__, names), np.int32, len(names))


def _picked(wanted: NDArray[np.bool_]) -> NDArray[np.bool_] | slice:
    """An index of the wanted rows; all of them are taken without a copy."""
    return slice(None) if wanted.all() else wanted


def create(folder: Path, identity: str, width: int) -> Mirror:
    """Return an empty mirror in a folder of its own below `folder`."""
    epoch = f"{time.time_ns():x}-{secrets.token_hex(4)}"
    place = folder / epoch
    make_private_folder(place)
    mirror = Mirror(
        identity, width, place, epoch, Keys.empty(place), Adjacency.empty(place),
        Column(place / "classes", np.int32),
        Column(place / "created_ns", np.int64),
        Column(place / "features", np.float32, width), Patches.empty(place, width),
    )  # fmt: skip
    mirror.claim = claim(folder, epoch)
    mirror.advance()
    return mirror
