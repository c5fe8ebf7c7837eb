"""The versions from which a warm start inherited weights, and so what those learnt.

A version without `[model] warm_start` has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ringfence.connector.store.engine import Store
from ringfence.connector.store.models import members
from ringfence.connector.store.shadow.consulted import consulted_runs

WARM_START_KEY = "warm_start"  # of a manifest: the version whose weights it began with
LEARNT: tuple[str, ...] = ("train", "validation")


def ancestors_of(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the versions whose weights a version began with, the newest first.

    >>> ancestors_of({"warm_start": {"from": "v2", "ancestors": ["v2", "v1"]}})
    ('v2', 'v1')
    >>> ancestors_of({"warm_start": {"from": None, "because": "other classes"}})
    ()
    """
    kept = manifest.get(WARM_START_KEY) or {}
    return tuple(kept.get("ancestors", ()))


def learnt_by(store: Store, project: str, versions: Iterable[str]) -> frozenset[str]:
    """Return the keys of the nodes that some versions trained on or stopped by."""
    return frozenset(
        member.node_key
        for version in versions
        for member in members(store, project, version)
        if member.role in LEARNT
    )


def runs_consulted(store: Store, project: str, versions: Iterable[str]) -> frozenset[int]:
    """Return the runs that may have helped to choose one of some versions."""
    return frozenset(seq for version in versions for seq in consulted_runs(store, project, version))
