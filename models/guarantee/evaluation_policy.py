"""When a node is evaluated: decided beforehand, from its creation time and a hash of its key.

The guarantee holds at any time of evaluation, once per node, provided the time was chosen before
anyone saw a set of that node. So a policy is a value, fixed with the model version, with a digest
to record; what is due follows from it, from creation times and, where each node has a random time
of its own, from a keyed hash of its key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

__all__ = ["DueRows", "EvaluationPolicy", "PolicyChanged", "due_rows", "require_policy"]

Times = NDArray[np.int64]
Floats = NDArray[np.float64]
PolicyKind = Literal["arrival", "delay", "date", "random"]
POLICY_KINDS: tuple[PolicyKind, ...] = get_args(PolicyKind)
LATEST_NS = np.iinfo(np.int64).max


class PolicyChanged(ValueError):
    """Sets were made under another evaluation time than the one configured now."""


@dataclass(frozen=True, slots=True)
class EvaluationPolicy:
    """On arrival, after a delay, at a date or at a random time; nanoseconds since 1970 UTC.

    Build one with ``on_arrival()``, ``after(delay_ns)``, ``at(date_ns)`` or ``within(delay_ns)``.

    >>> EvaluationPolicy.after(3_600_000_000_000).describe()
    'each node is evaluated once, 1:00:00 after its creation'
    >>> EvaluationPolicy.on_arrival().due_at(np.array([5, 7])).tolist()
    [5, 7]
    >>> EvaluationPolicy.within(100).due_at(np.array([5, 7]), np.array([0.25, 0.0])).tolist()
    [30, 7]
    """

    kind: PolicyKind
    ns: int = 0

    def __post_init__(self) -> None:
        if self.kind not in POLICY_KINDS:
            raise ValueError(
                f"evaluation time {self.kind!r} is unknown; choose one of {', '.join(POLICY_KINDS)}"
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

    @classmethod
    def within(cls, delay_ns: int) -> EvaluationPolicy:
        """Each node at a random age of its own, uniform from 0 to ``delay_ns``."""
        return cls("random", int(delay_ns))

    @property
    def is_random(self) -> bool:
        """Whether each node has a number of its own in [0, 1) that says when it is due."""
        return self.kind == "random"

    def due_at(self, created_ns: Times, uniforms: Floats | None = None) -> Times:
        """The first moment at which each node may be evaluated, ``[n]`` int64 nanoseconds.

        Args:
            created_ns: when the nodes were created [n].
            uniforms: each node's own number in [0, 1) [n], where the policy `is_random`.
        """
        created = np.asarray(created_ns, dtype=np.int64)
        if self.kind == "date":
            return np.maximum(created, self.ns)
        ages = np.full(created.shape, self.ns, np.int64)
        if self.is_random:
            if uniforms is None:
                raise ValueError("a random evaluation time needs a number in [0, 1) for each node")
            ages = np.floor(np.asarray(uniforms, np.float64) * self.ns).astype(np.int64)
        return np.minimum(created, LATEST_NS - ages) + ages  # never past the last int64

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
        if self.is_random:
            most = timedelta(microseconds=self.ns // 1000)
            return f"each node is evaluated once, at a random age of its own of at most {most}"
        date = datetime.fromtimestamp(self.ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"each node is evaluated once, at {date}; nodes created later, on arrival"


@dataclass(frozen=True, slots=True)
class DueRows:
    """Rows that may be evaluated now, rows that wait, and when the next of those is due."""

    due: NDArray[np.int64]
    waiting: NDArray[np.int64]
    next_ns: int | None


def due_rows(
    policy: EvaluationPolicy, created_ns: Times, now_ns: int, uniforms: Floats | None = None
) -> DueRows:
    """Which of the nodes not yet evaluated are due at ``now_ns``; each row is in one of the two.

    A run that starts late evaluates late: its lateness does not depend on any set, so the promise
    stays.

    >>> due_rows(EvaluationPolicy.after(10), np.array([0, 5, 20]), now_ns=15)
    DueRows(due=array([0, 1]), waiting=array([2]), next_ns=30)
    """
    times = policy.due_at(created_ns, uniforms)
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
