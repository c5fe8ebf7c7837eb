"""Which prediction belongs to the node that has a key now.

A node is its key and its creation time. Where the graph has no creation times, it is its key for as
long as runs see it there without a break. A relationship EVALUATED that a node carries says it
without either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ringfence.connector.keys import typed_key_of


class SealedNode(Protocol):
    """What a prediction has on record of its node."""

    @property
    def node_key(self) -> str:
        """The record's key."""

    @property
    def created_ns(self) -> int | None:
        """The sealed time; None in predictions of older versions."""

    @property
    def in_graph(self) -> bool:
        """Whether no run has seen that the node left."""


@dataclass(frozen=True, slots=True)
class PresentNode:
    """A node as the graph has it: its creation time, and the keys of its EVALUATED of a project."""

    created_ns: int | None
    evaluated: Sequence[str] = ()


def belongs_to(sealed: SealedNode, node: PresentNode, project: str, has_times: bool) -> bool:
    """Whether a prediction is that of the node that has its key now.

    A node without a usable time, in a graph that has them, can't be shown to be the one on record.

    >>> from types import SimpleNamespace
    >>> sealed = SimpleNamespace(node_key="i:7", created_ns=5, in_graph=True)
    >>> belongs_to(sealed, PresentNode(5), "p", True), belongs_to(sealed, PresentNode(6), "p", True)
    (True, False)
    >>> belongs_to(sealed, PresentNode(6, ["p/i:7"]), "p", True)
    True
    """
    carried = {str(key).removeprefix(f"{project}/") for key in node.evaluated}
    if sealed.node_key in carried:
        return True
    if typed_key_of(sealed.node_key) in map(typed_key_of, carried):
        return False  # it has the set of another node that had this key
    if sealed.created_ns is None:
        return True
    return sealed.created_ns == node.created_ns if has_times else sealed.in_graph
