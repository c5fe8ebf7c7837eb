"""What a list's promise is about: the list of each run, or all lists of the stream together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from ringfence.models.selection.references import Floats, Tail


class SelectionScope(ABC):
    """One value of `per`: how nodes are chosen, and what is promised of the chosen ones.

    name: in the configuration and on record · is_proved: whether the promise is proved for new
    nodes that are exchangeable with the references, not only measured. needs_right: whether the
    references that a list can be short of are right for it, or wrong. can_hold: what a list
    can't do while it is short of them.
    """

    name: ClassVar[str]
    is_proved: ClassVar[bool]
    needs_right: ClassVar[bool]
    can_hold: ClassVar[str]

    @abstractmethod
    def shares(self, tails: Sequence[Tail], nodes: int, may_be_wrong: float) -> Floats:
        """Return the smallest share at which each new node would be listed [nodes].

        The list holds those of at most `may_be_wrong`.
        """

    @abstractmethod
    def references_needed(self, wrong_share: float, may_be_wrong: float) -> int:
        """Return how many references of that kind a list needs, in each stratum."""

    @abstractmethod
    def sentence(self, share: float, wrong: str) -> str:
        """Say what is promised; `wrong` is what listed nodes may be: "not mule"."""
