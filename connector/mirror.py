"""The local mirror: the graph's nodes and edges as columns, so that a run reads only what is new.

It is a cache. It can be thrown away at any time and is rebuilt from Neo4j when it is missing, torn,
of another graph or mapping, or when the count store says that nodes were missed or deleted.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.changes import RelationshipBlock
from ringfence.connector.rows import NodeBlock, Rejected

FORMAT = 1
FILE = "mirror.npz"
UNKNOWN = -1


@dataclass(slots=True)
class Mirror:
    """Columns of the graph as far as `watermark_ns`; row i of every node column is one node."""

    identity: str
    width: int
    watermark_ns: int | None = None
    seq: int = 0
    relationship_count: int = 0
    keys: list[str] = field(default_factory=list)
    class_names: list[str] = field(default_factory=list)
    classes: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    created_ns: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    evaluated: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    features: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))
    edges: NDArray[np.int64] = field(default_factory=lambda: np.empty((3, 0), np.int64))
    dangling: list[tuple[str, str, int]] = field(default_factory=list)
    rejected: dict[str, Rejected] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.keys)

    def add_nodes(self, blocks: list[NodeBlock]) -> NDArray[np.int64]:
        """Append the nodes that aren't here yet and return their rows."""
        first = self.size
        fresh: list[NodeBlock] = []
        for block in blocks:
            new = []
            for i, key in enumerate(block.keys):
                if key not in self.rows:
                    self.rows[key] = len(self.keys)
                    self.keys.append(key)
                    new.append(i)
            fresh.append(_take(block, new))
            self.rejected.update({bad.element_id: bad for bad in block.rejected})
        classes = [self._class_index(name) for block in fresh for name in block.classes]
        added = len(classes)
        self.classes = np.append(self.classes, np.array(classes, np.int32))
        self.created_ns = np.concatenate([self.created_ns, *(b.created_ns for b in fresh)])
        self.evaluated = np.append(self.evaluated, np.zeros(added, np.bool_))
        self.features = np.concatenate(
            [self.features.reshape(-1, self.width), *(b.features for b in fresh)]
        )
        return np.arange(first, first + added)

    def add_relationships(self, blocks: list[RelationshipBlock]) -> int:
        """Append relationships; one whose end isn't here yet waits. Return how many are new."""
        waiting = self.dangling
        for block in blocks:
            waiting = waiting + [
                (source, target, block.type_index)
                for source, target in zip(block.sources, block.targets, strict=True)
                if target is not None
            ]
        here = [(a, b, kind) for a, b, kind in waiting if a in self.rows and b in self.rows]
        self.dangling = sorted({end for end in waiting if not self._both_here(end)})
        rows = [(self.rows[a], self.rows[b], kind) for a, b, kind in here]
        before = self.edges.shape[1]
        if rows:
            both = np.concatenate([self.edges, np.array(rows, np.int64).T], axis=1)
            self.edges = _distinct(both)
        return int(self.edges.shape[1] - before)

    def _both_here(self, end: tuple[str, str, int]) -> bool:
        return end[0] in self.rows and end[1] in self.rows

    def _class_index(self, name: str | None) -> int:
        if name is None:
            return UNKNOWN
        if name not in self.class_names:
            self.class_names.append(name)
        return self.class_names.index(name)


def load(folder: Path, identity: str) -> Mirror | None:
    """Return the stored mirror, or None where there is none that can be trusted for `identity`."""
    try:
        with (folder / FILE).open("rb") as file, np.load(file, allow_pickle=False) as columns:
            meta = json.loads(bytes(columns["meta"]))
            if meta["format"] != FORMAT or meta["identity"] != identity:
                return None
            return _from_columns(meta, {name: columns[name] for name in columns.files})
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, EOFError):
        return None


def save(mirror: Mirror, folder: Path) -> None:
    """Write the mirror beside the old one and swap; a crash leaves one or the other, whole."""
    folder.mkdir(parents=True, exist_ok=True)
    meta = {
        "format": FORMAT,
        "identity": mirror.identity,
        "width": mirror.width,
        "watermark_ns": mirror.watermark_ns,
        "seq": mirror.seq,
        "relationship_count": mirror.relationship_count,
        "keys": mirror.keys,
        "class_names": mirror.class_names,
        "dangling": mirror.dangling,
        "rejected": [(r.element_id, r.node_key, r.reason) for r in mirror.rejected.values()],
    }
    temporary = folder / f"{FILE}.{os.getpid()}.tmp"
    with temporary.open("wb") as file:
        np.savez(
            file,
            meta=np.frombuffer(json.dumps(meta).encode(), np.uint8),
            classes=mirror.classes,
            created_ns=mirror.created_ns,
            evaluated=mirror.evaluated,
            features=mirror.features,
            edges=mirror.edges,
        )
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / FILE)


def _from_columns(meta: dict[str, Any], columns: dict[str, NDArray[Any]]) -> Mirror:
    return Mirror(
        identity=meta["identity"],
        width=meta["width"],
        watermark_ns=meta["watermark_ns"],
        seq=meta["seq"],
        relationship_count=meta["relationship_count"],
        keys=meta["keys"],
        class_names=meta["class_names"],
        dangling=[(a, b, kind) for a, b, kind in meta["dangling"]],
        rejected={row[0]: Rejected(*row) for row in meta["rejected"]},
        rows={key: row for row, key in enumerate(meta["keys"])},
        **{
            name: columns[name]
            for name in ("classes", "created_ns", "evaluated", "features", "edges")
        },
    )


def _distinct(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Parallel relationships, and those read twice, collapse into one edge per type."""
    codes = np.unique(edges[0] << 36 | edges[1] << 8 | edges[2])  # 2^28 nodes, 2^8 types
    return np.stack([codes >> 36, codes >> 8 & (1 << 28) - 1, codes & 255])


def _take(block: NodeBlock, rows: list[int]) -> NodeBlock:
    return NodeBlock(
        [block.keys[i] for i in rows],
        block.features[rows],
        [block.classes[i] for i in rows],
        block.created_ns[rows],
        [],
    )
