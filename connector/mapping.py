"""How a user's graph maps onto nodes, features, classes and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TimeKind = Literal["zoned", "local", "milliseconds"]
"""How `created_at` is stored: ZONED DATETIME, LOCAL DATETIME (read as UTC) or INTEGER."""


@dataclass(frozen=True, slots=True)
class RelationshipMapping:
    """One relationship type that carries messages between nodes."""

    type: str
    undirected: bool = True
    created_at: str | None = None


@dataclass(frozen=True, slots=True)
class GraphMapping:
    """Names in the user's graph; each passes `quoting.quote` before it meets Cypher."""

    label: str
    key: str
    features: tuple[str, ...]
    features_are_list: bool
    class_property: str
    created_at: str
    time_kind: TimeKind
    relationships: tuple[RelationshipMapping, ...]
