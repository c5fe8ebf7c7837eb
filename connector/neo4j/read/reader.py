"""Where and how a graph is read, and what a read brought."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector import mirror as mirrors
from ringfence.connector.mapping import GraphMapping, RelationMapping
from ringfence.connector.mirror import CLASSIFIED, Mirror, RelationshipBlock
from ringfence.connector.mirror.blocks import AnyBlock
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.read.nodes import LabelReader
from ringfence.connector.neo4j.read.relations import RelationReader
from ringfence.connector.neo4j.read.watermark import UNSEEN_SECONDS
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.times import NANOSECONDS

FirstSeen = Callable[[Sequence[str]], Mapping[str, int]]
"""Tells when nodes were first seen, by their keys, as SQL has it; unknown keys are left out."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The mirror as it is now, and what this read brought.

    `rebuilt` says why the whole graph was read ("" where what is new was enough), `note` what held
    the watermark back, and what comparisons with the graph brought. `new_rows` are rows of the
    classified label. `first_seen` has the nodes that this run saw first, where the graph has no
    creation times.
    """

    mirror: Mirror
    new_rows: NDArray[np.int64]
    new_edges: int
    from_ns: int | None
    rebuilt: str
    note: str
    first_seen: Mapping[str, int] = field(default_factory=dict)

    def joined_with(self, later: SyncResult) -> SyncResult:
        """Return two reads of one mirror as one."""
        rows = np.concatenate([self.new_rows, later.new_rows])
        return replace(
            later,
            new_rows=rows[later.mirror.present[rows]],
            new_edges=self.new_edges + later.new_edges,
            from_ns=self.from_ns,
            first_seen={**self.first_seen, **later.first_seen},
        )

    def noted(self, note: str) -> SyncResult:
        """Return the same with one more note."""
        return replace(self, note="; ".join(filter(None, (self.note, note))))


@dataclass(slots=True)
class GraphReader:
    """Where and how to read: the graph, its mapping, the block size and the overlap.

    A first read is saved every `part_seconds`, so that one that dies need not begin anew. Each
    later one compares `check_nodes` nodes with the graph. The watermark stays `unseen_seconds`
    behind the clock where the list of open transactions may be short. `first_seen` queries the
    audit store. `writer` names this process to others that find the mirror's files in use.
    """

    graph: Graph
    mapping: GraphMapping
    folder: Path
    rows: int
    overlap_seconds: float
    progress: Progress = no_progress
    part_seconds: float = 10.0
    check_nodes: int = 0
    unseen_seconds: float = UNSEEN_SECONDS
    first_seen: FirstSeen = field(default=lambda _keys: {})
    writer: str = field(default_factory=lambda: f"process {os.getpid()}")
    is_first: bool = field(default=False, init=False)
    saved_at: float = field(default_factory=time.monotonic, init=False)

    def label(self, mirror: Mirror, label: int, now_ns: int = 0) -> LabelReader:
        """Return what reads the nodes of one label."""
        return LabelReader(self.graph, self.mapping, label, self.rows, mirror.width, now_ns)

    def relation(self, index: int) -> RelationReader:
        """Return what reads one relation."""
        return RelationReader(self.graph, self.mapping, index, self.rows)

    def timed_relations(self) -> list[int]:
        """Return the places of the relations that have creation times."""
        return [
            index for index, relation in enumerate(self.mapping.relations) if relation.created_at
        ]

    def describe(self, relation: RelationMapping) -> str:
        """Return a relation's name for notes: its type, with its labels where there are several."""
        return relation.type if len(self.mapping.nodes) == 1 else self.mapping.describe(relation)

    def next_since_ns(self, mirror: Mirror) -> int:
        """Return where the next read begins; what was created before it is settled."""
        return (mirror.watermark_ns or 0) - int(self.overlap_seconds * NANOSECONDS)

    def sign(self, mirror: Mirror) -> None:
        """Write into the lock of a mirror who adds to it."""
        if mirror.claim is not None:
            mirror.claim.sign(self.writer)

    def save_part(self, mirror: Mirror) -> None:
        """Save what a first read has brought so far, every `part_seconds`."""
        if self.is_first and time.monotonic() - self.saved_at >= self.part_seconds:
            mirrors.save_part(mirror, self.folder)
            self.saved_at = time.monotonic()

    def read_label(
        self, mirror: Mirror, label: int, blocks: Iterable[AnyBlock], expected: int
    ) -> None:
        """Add blocks of a label's nodes, with progress; a first read is saved now and then."""
        several = len(self.mapping.nodes) > 1
        what = f"{self.mapping.nodes[label].label} nodes" if several else "nodes"
        other_rows = mirror.size - mirror.count(label)
        for block in blocks:
            self.add_block(mirror, block)
            done = mirror.size - other_rows + count_rejected(mirror, label)
            self.progress(what, done, expected)
            self.save_part(mirror)

    def add_block(self, mirror: Mirror, block: AnyBlock) -> None:
        """Append nodes; one whose graph has no creation times keeps when it was first seen.

        Context that can't be used is counted, and stays out of the quarantine that SQL records.
        """
        if block.label != CLASSIFIED:
            mirror.context_rejected[block.label] = count_rejected(mirror, block.label) + len(
                block.rejected
            )
            block = replace(block, rejected=[])
        elif not self.mapping.classified.created_at:
            known = self.first_seen(block.keys)
            for place, key in enumerate(block.keys) if known else ():
                block.created_ns[place] = known.get(key, block.created_ns[place])
        mirror.add_nodes([block])

    def read_relations(
        self, mirror: Mirror, blocks: Iterator[tuple[RelationshipBlock, int]]
    ) -> None:
        """Add blocks that hold all relationships of their anchors, likewise; see `add_anchored`."""
        done = mirror.edge_count
        for block, step in blocks:
            mirror.add_anchored(block, step)
            done += len(block.targets)
            self.progress("relationships", done, mirror.relationship_count)
            self.save_part(mirror)


def count_rejected(mirror: Mirror, label: int) -> int:
    """Return how many nodes of a label can't be used."""
    return len(mirror.rejected) if label == CLASSIFIED else mirror.context_rejected.get(label, 0)
