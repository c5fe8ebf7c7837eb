"""When a node is evaluated: decided for all nodes beforehand, from nothing but its creation time.

The guarantee holds at any time of evaluation, once per node, provided the time was chosen before
anyone saw a set of that node. So a policy is a value, fixed with the model version, with a digest
to record; what is due follows from it and from creation times alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["DueRows", "EvaluationPolicy", "PolicyChanged", "due_rows", "require_policy"]

Times = NDArray[np.int64]
LATEST_NS = np.iinfo(np.int64).max


class PolicyChanged(ValueError):
    """Sets were seen under another evaluation time than the one asked for now."""


@dataclass(frozen=True, slots=True)
class EvaluationPolicy:
    """On arrival, after a delay, or at a date; times are nanoseconds since 1970 UTC.

    Build one with ``on_arrival()``, ``after(delay_ns)`` or ``at(date_ns)``.

    >>> EvaluationPolicy.after(3_600_000_000_000).describe()
    'each node is evaluated once, 1:00:00 after its creation'
    >>> EvaluationPolicy.on_arrival().due_at(np.array([5, 7])).tolist()
    [5, 7]
    """

    kind: Literal["arrival", "delay", "date"]
    ns: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("arrival", "delay", "date"):
            raise ValueError(
                f"evaluation time {self.kind!r} is unknown; choose arrival, delay or date"
            )
        if (self.kind == "arrival" and self.ns) or not 0 <= self.ns <= LATEST_NS:
            raise ValueError(
                f"evaluation time {self.kind} got {self.ns} ns; a delay or date is from 0 to "
                f"{LATEST_NS}, and arrival takes none"
            )

    @classmethod
    def on_arrival(cls) -> EvaluationPolicy:
        """Each node in the first run that finds it."""
        return cls("arrival")

    @classmethod
    def after(cls, delay_ns: int) -> EvaluationPolicy:
        """Each node once it is ``delay_ns`` old."""
        return cls("delay", int(delay_ns))

    @classmethod
    def at(cls, date_ns: int) -> EvaluationPolicy:
        """All nodes at one date; a node created after it, on arrival."""
        return cls("date", int(date_ns))

    def due_at(self, created_ns: Times) -> Times:
        """The first moment at which each node may be evaluated, ``[n]`` int64 nanoseconds."""
        created = np.asarray(created_ns, dtype=np.int64)
        if self.kind == "date":
            return np.maximum(created, self.ns)
        return np.minimum(created, LATEST_NS - self.ns) + self.ns  # never past the last int64

    def text(self) -> str:
        """The policy as one line; equal policies have equal lines."""
        return f"ringfence evaluation policy v1: {self.kind} {self.ns}"

    def digest(self) -> str:
        """SHA-256 of ``text()`` in hexadecimal, to store before the first set is made."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def describe(self) -> str:
        """What a person reads in a report."""
        if self.kind == "arrival":
            return "each node is evaluated once, in the first run after its arrival"
        if self.kind == "delay":
            delay = timedelta(microseconds=self.ns // 1000)
            return f"each node is evaluated once, {delay} after its creation"
        date = datetime.fromtimestamp(self.ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"each node is evaluated once, at {date}; nodes created later, on arrival"


@dataclass(frozen=True, slots=True)
class DueRows:
    """Rows that may be evaluated now, rows that wait, and when the next of those is due."""

    due: NDArray[np.int64]
    waiting: NDArray[np.int64]
    next_ns: int | None


def due_rows(policy: EvaluationPolicy, created_ns: Times, now_ns: int) -> DueRows:
    """Which of the nodes not yet evaluated are due at ``now_ns``; each row is in one of the two.

    A run that starts late evaluates late: its lateness does not depend on any set, so the promise
    stays.

    >>> due_rows(EvaluationPolicy.after(10), np.array([0, 5, 20]), now_ns=15)
    DueRows(due=array([0, 1]), waiting=array([2]), next_ns=30)
    """
    times = policy.due_at(created_ns)
    ready = times <= now_ns
    later = times[~ready]
    return DueRows(
        np.flatnonzero(ready), np.flatnonzero(~ready), int(later.min()) if later.size else None
    )


def require_policy(policy: EvaluationPolicy, recorded: str | None) -> str:
    """The digest to record; raises ``PolicyChanged`` where another one already made sets.

    Args:
        policy: what the configuration says now.
        recorded: the digest stored with the first set of this model version; None before it.

    >>> first = require_policy(EvaluationPolicy.on_arrival(), recorded=None)
    >>> require_policy(EvaluationPolicy.on_arrival(), recorded=first) == first
    True
    """
    digest = policy.digest()
    if recorded not in (None, digest):
        raise PolicyChanged(
            f"sets of this model were made under evaluation policy {recorded}, but the "
            f"configuration now says {policy.describe()} ({digest}); a time chosen after seeing "
            "sets carries no guarantee: restore the old setting, or train a new model version"
        )
    return digest
