"""Columns of nodes and relationships as a reader hands them to the mirror."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import RejectedNode

Picked = NDArray[np.bool_] | slice
"""Which nodes of a block are meant: flags [n], or all of them."""

TypedKeys = Sequence[str | None] | NDArray[np.int64]
"""Keys as typed text (None: can't be used), or as they are where all of them are integers."""


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """Usable nodes as columns: typed keys, features [n, d], class names (None: unknown), times."""

    keys: list[str]
    features: NDArray[np.float32]
    classes: list[str | None]
    created_ns: NDArray[np.int64]
    rejected: list[RejectedNode]
    label: int = 0


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


AnyBlock = NodeBlock | RawBlock


@dataclass(frozen=True, slots=True)
class RelationshipBlock:
    """Relationships of one type by the keys of their ends; source i has counts[i] targets.

    Without `counts` every source has one. A target of None can't be used. `anchors`: the nodes of
    which the block holds all relationships of the type, where these aren't its sources. `numbers`
    and `texts`: number and record of each relationship [m], where the relation has columns.
    """

    type_index: int
    sources: TypedKeys
    targets: TypedKeys
    counts: NDArray[np.int64] | None = None
    anchors: TypedKeys | None = None
    numbers: NDArray[np.int64] | None = None
    texts: Sequence[bytes] = ()

    @property
    def target_counts(self) -> NDArray[np.int64]:
        """How many targets each source has [n]."""
        return np.ones(len(self.sources), np.int64) if self.counts is None else self.counts

    def leave_out(self, pairs: NDArray[np.bool_]) -> RelationshipBlock:
        """Return a block without some of its relationships [m]."""
        source = np.repeat(np.arange(len(self.sources)), self.target_counts)[~pairs]
        kept = np.flatnonzero(~pairs).tolist()
        return RelationshipBlock(
            self.type_index,
            [_text(self.sources[place]) for place in source.tolist()],
            [_text(self.targets[place]) for place in kept],
            numbers=None if self.numbers is None else self.numbers[kept],
            texts=[self.texts[place] for place in kept] if self.texts else (),
        )

    def ends(self, source: int, target: int) -> tuple[str, str] | None:
        """Return two places' keys as typed text; None where one can't be used."""
        keys = _text(self.sources[source]), _text(self.targets[target])
        return None if keys[0] is None or keys[1] is None else (keys[0], keys[1])


@dataclass(frozen=True, slots=True)
class RelatedBlock:
    """Relationships of one relation with columns, by rows: numbers, ends and records [m]."""

    numbers: NDArray[np.int64]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    texts: Sequence[bytes]


def _text(key: object) -> str | None:
    return key if key is None or isinstance(key, str) else f"i:{key}"
