"""Evaluated nodes of known class in a list, where the product has them in SQL (`KnownNodes`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ringfence.connector.records import KnownNode
from ringfence.connector.store.calibration.known import KnownCount


@dataclass(frozen=True)
class ListedNodes:
    """A list that answers as the store does."""

    nodes: Sequence[KnownNode]
    selected: Collection[str] = ()

    def all(self) -> list[KnownNode]:
        return list(self.nodes)

    def counts(self) -> list[KnownCount]:
        alike = Counter(
            (n.evaluated_in, n.label, n.noticed_ns, n.joined_by is not None, n.role,
             n.node_key in self.selected, n.sampled)
            for n in self.nodes
        )  # fmt: skip
        return [KnownCount(*kind[:5], nodes, *kind[5:]) for kind, nodes in alike.items()]

    def unjoined(self, runs: Collection[int]) -> list[KnownNode]:
        return [
            n
            for n in self.nodes
            if n.evaluated_in in runs and n.joined_by is None and n.role is None
        ]

    def joined(self, runs: Collection[int], label: str | None = None) -> list[KnownNode]:
        of_runs = [n for n in self.all_joined() if n.evaluated_in in runs]
        return [n for n in of_runs if label in (None, n.label)]

    def all_joined(self) -> list[KnownNode]:
        return [n for n in self.nodes if n.joined_by is not None]

    def members(self) -> dict[str, tuple[int, str]]:
        return {n.node_key: (n.evaluated_in, n.label) for n in self.nodes if n.role}


class FittingRecord:
    """Every row fits its seal: where listed nodes stand in for SQL there is none to compare."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: None


@contextmanager
def fitting_record(workspace: Any) -> Iterator[tuple[Any, FittingRecord]]:
    """Yield a project that has no store as `on_record` does one that has."""
    yield workspace, FittingRecord()
