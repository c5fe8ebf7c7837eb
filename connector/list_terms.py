"""A list of `[[lists]]` as it crosses folders: what it promises, and what a run made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

THEOREM, MEASURED, HOPED = "theorem", "measured", "hoped"
"""What stands behind the promise of a list; *hoped*: no proof, and no measurement of lists."""


def weakest(statuses: Iterable[str]) -> str:
    """Return what stands behind several lists together.

    >>> weakest(["theorem", "hoped", "measured"])
    'hoped'
    """
    present = set(statuses)
    return next((name for name in (HOPED, MEASURED) if name in present), THEOREM)


@dataclass(frozen=True, slots=True)
class ListTerms:
    """What a list promises: nodes of a class, or (`is_clear`) not of it; the share of wrong ones.

    `per` says what the promise is about: the list of each run, or the stream of all runs. Lists of
    other terms are other lists, whatever their name.
    """

    name: str
    class_: str
    is_clear: bool
    may_be_wrong: float
    per: str

    @property
    def wrong(self) -> str:
        """Return what a wrong node of the list is: "not mule", or "mule" where it clears."""
        return self.class_ if self.is_clear else f"not {self.class_}"

    @property
    def right(self) -> str:
        """Return what a right node of the list is: "mule", or "not mule" where it clears."""
        return f"not {self.class_}" if self.is_clear else self.class_

    def is_wrong(self, label: str) -> bool:
        """Whether a node of a class is wrong on this list."""
        return (label == self.class_) == self.is_clear


@dataclass(frozen=True, slots=True)
class ListFacts:
    """A list of a run: its terms, what it was compared with, how many nodes it holds.

    `references` are calibration nodes, `wrong_references` the wrong ones;
    `wrong_share` is the share of such nodes that new nodes are taken to have. `needed` are the
    references that a list takes: wrong ones under `per = "run"`, for a list of all right nodes;
    right ones under `per = "stream"`, for a list of any. `status` says what stands behind
    the promise, `words` are the run's sentence about it.
    """

    terms: ListTerms
    references: int
    wrong_references: int
    wrong_share: float
    needed: int
    listed: int
    status: str
    words: str

    def as_json(self) -> dict[str, Any]:
        """Return the facts as `run.lists` holds them."""
        values = asdict(self)
        return {**values.pop("terms"), **values}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ListFacts:
        """Return what `as_json` gave."""
        terms = ListTerms(**{item.name: values[item.name] for item in fields(ListTerms)})
        rest = {item.name: values[item.name] for item in fields(cls) if item.name != "terms"}
        return cls(terms=terms, **rest)
