"""Named places in a run where the fault harness injects kills and freezes; otherwise no-ops.

A harness replaces `reach` in its own worker process before it starts a run.
"""

from __future__ import annotations

NAMES = (
    "lease taken",
    "graph read",
    "before decide",
    "block in sql",
    "inside decide",
    "decided",
    "run in graph",
    "before block",
    "inside block",
    "after block",
    "before close",
    "inside close",
    "closed",
    "labels read",
    "before coverage",
    "coverage in sql",
    "coverage in graph",
)
ROTATION_NAMES = ("next key written", "key rotated")
"""Places of `ringfence rekey`, which no run reaches."""
SIGNING_KEY_NAMES = ("next signing key written", "signing key recorded")
"""Places of `ringfence key new`, which no run reaches."""
PROMOTION_NAMES = ("before promotion", "inside promotion", "promoted")
"""Places of `ringfence promote` and `ringfence rollback`, which no run reaches."""
SHADOW_NAMES = ("before shadow", "inside shadow")
"""Places of a run's shadow part, after the run is closed: reached where there is a candidate."""

RETENTION_NAMES = ("before removal", "inside removal", "removed")
"""Places of `ringfence prune`, which no run reaches."""


def reach(name: str) -> None:
    """Tell the fault harness, if there is one, that the run has reached the place `name`."""
    verbs = ROTATION_NAMES + SIGNING_KEY_NAMES + PROMOTION_NAMES + RETENTION_NAMES
    if name not in NAMES + SHADOW_NAMES + verbs:
        raise ValueError(f"{name!r} is no fault point")
