"""Nodes of several labels in one row space, and how what is new joins them.

A row has a label (its place in the mapping, 0 is the classified one) and a place in its label's
table of raw columns. Keys of context nodes carry their label in front, so that equal keys of two
labels stay apart and none of them can be taken for a key of the classified label. Context nodes are
closed from the start: nobody evaluates them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector import mirror as mirrors
from ringfence.connector.files import make_private_folder
from ringfence.connector.mapping import TypedMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.mirror.columns import Column
from ringfence.connector.mirror.typed.table import RawTable, encode_columns
from ringfence.connector.neo4j.read.columns import NodeBlock
from ringfence.connector.records import RejectedNode

Ints = NDArray[np.int64]
CLASSIFIED = 0


@dataclass(frozen=True, slots=True)
class RawBlock:
    """Usable nodes of one label as columns: keys, raw values by column, classes, times.

    Keys are those of the mirror: `context_key` for context.
    """

    label: int
    keys: list[str]
    columns: list[list[Any]]
    classes: list[str | None]
    created_ns: NDArray[np.int64]
    rejected: list[RejectedNode] = field(default_factory=list)


@dataclass(slots=True)
class TypedMirror:
    """A plain mirror of all rows, their labels, and the raw columns per label.

    `labels` uint8 [n]; `places` int64 [n]: each row's record in its label's table. `gaps` has, by
    relation, how many relationships the graph counts that no read brings (their ends can't be
    used); `revised` int64 [n] the base's version when a row's properties were last written.
    """

    base: Mirror
    folder: Path
    label_column: Column
    places: Ints
    tables: tuple[RawTable, ...]
    gaps: dict[int, int] = field(default_factory=dict)
    context_rejected: dict[int, int] = field(default_factory=dict)
    revised: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def size(self) -> int:
        """Number of rows, of all labels."""
        return self.base.size

    @property
    def labels(self) -> NDArray[np.uint8]:
        """The label of each row [n], by its place in the mapping."""
        return self.label_column.array

    def rows_of_label(self, label: int) -> Ints:
        """Return the rows of one label's nodes, ascending; deleted ones left gaps."""
        return np.flatnonzero((self.labels == label) & self.base.present)

    def count(self, label: int) -> int:
        """Return how many nodes a label has."""
        return int(((self.labels == label) & self.base.present).sum())

    def columns(self, label: int, rows: Ints) -> dict[str, list[Any]]:
        """Return the raw values of some rows of a label by column, None where missing."""
        return self.tables[label].columns(self.places[rows])

    def add_nodes(self, block: RawBlock) -> Ints:
        """Append the nodes that aren't here yet and return their rows."""
        first = self.base.size
        known = self.base.find(block.keys) >= 0
        self.base.add_nodes([_plain_block(block)])
        rows = self.base.find(block.keys)
        fresh = np.flatnonzero(~known & (rows >= first))
        fresh = fresh[np.unique(rows[fresh], return_index=True)[1]]  # the first of equal keys
        columns = [[column[at] for at in fresh.tolist()] for column in block.columns]
        places = self.tables[block.label].append(encode_columns(columns, len(fresh)))
        added = self.base.size - first
        joined = np.zeros(added, np.int64)
        joined[rows[fresh] - first] = places
        self.places = np.concatenate([self.places, joined])
        self.label_column.append(np.full(added, block.label, np.uint8))
        if block.label != CLASSIFIED:
            self.base.evaluated[first:] = True
        self.revised = np.concatenate([self.revised, np.full(added, self.base.version)])
        return np.arange(first, self.base.size)

    def remove_nodes(self, rows: Ints) -> dict[int, int]:
        """Take nodes out with their relationships; return by relation how many those were.

        Their rows stay as gaps, so that no other node gets another number.
        """
        return self.base.remove_nodes(rows)

    def update_nodes(self, block: RawBlock) -> Ints:
        """Write other properties for nodes that are here; return the rows that had others."""
        rows = self.base.find(block.keys)
        here = np.flatnonzero(rows >= 0)
        table, texts = self.tables[block.label], encode_columns(block.columns, len(block.keys))
        before = table.texts(self.places[rows[here]])
        changed = [at for at, old in zip(here.tolist(), before, strict=True) if texts[at] != old]
        self.places[rows[changed]] = table.append([texts[at] for at in changed])
        self.revised[rows[changed]] = self.base.version
        return rows[changed]


def _plain_block(block: RawBlock) -> NodeBlock:
    nothing = np.empty((len(block.keys), 0), np.float32)
    return NodeBlock(block.keys, nothing, block.classes, block.created_ns, block.rejected)


def context_key(label: int, key: str) -> str:
    """Return the key under which the mirror has a node.

    >>> context_key(0, "i:5"), context_key(2, "s:JFK")
    ('i:5', '@2:s:JFK')
    """
    return key if label == CLASSIFIED else f"@{label}:{key}"


def context_keys(label: int, keys: Sequence[str | None]) -> list[str | None]:
    """Return the mirror's keys of many nodes; None stays None."""
    if label == CLASSIFIED:
        return list(keys)
    front = f"@{label}:"
    return [None if key is None else front + key for key in keys]


def plain_key(key: str) -> str:
    """Return the typed key of a node by its key in the mirror.

    >>> plain_key("@2:s:JFK"), plain_key("i:5")
    ('s:JFK', 'i:5')
    """
    return key.split(":", 1)[1] if key.startswith("@") else key


def create_typed(folder: Path, identity: str, mapping: TypedMapping) -> TypedMirror:
    """Return an empty mirror of these labels below `folder`."""
    base = mirrors.create(folder, identity, 0)
    place = folder / "raw" / base.epoch
    make_private_folder(place)
    tables = tuple(
        RawTable.empty(place, label, node.column_names) for label, node in enumerate(mapping.nodes)
    )
    return TypedMirror(
        base, place, Column(place / "labels", np.uint8), np.empty(0, np.int64), tables
    )
