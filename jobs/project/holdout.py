"""The holdout: nodes excluded from training, early stopping and calibration of every version.

Whether a node is in it follows from its key, the project's name and the share alone. So it is the
same for every version, whatever `[model] seed` is; nodes that arrive later, or whose class becomes
known later, are in it or not from the start; and a larger share holds all of a smaller one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.json_types import JsonObject
from ringfence.connector.keys import typed_key_of
from ringfence.jobs.config.settings import Settings
from ringfence.models import hashing

HOLDOUT_KEY = "holdout"  # of a manifest: how the holdout was drawn
MIN_NODES = 30
"""With fewer nodes a difference between versions could not be told from chance."""


@dataclass(frozen=True, slots=True)
class Holdout:
    """How a project's holdout is drawn: `key` is the hash's, `share` that of all nodes."""

    key: str
    share: float

    def contains(self, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Return which typed node keys are in the holdout [n].

        >>> Holdout("accounts", 0.5).contains(["s:a", "s:b", "s:c"]).tolist()
        [False, True, True]
        """
        return hashing.drawn(keys, self.key, hashing.HOLDOUT, self.share)

    def as_manifest(self) -> JsonObject:
        """Return what a manifest holds of it."""
        return asdict(self)


def configured_holdout(settings: Settings) -> Holdout:
    """Return the configured holdout."""
    return Holdout(settings.project, settings.model.holdout)


def holdout_of(manifest: Mapping[str, Any]) -> Holdout | None:
    """Return the holdout that a version was trained without; None where it had none."""
    recorded = manifest.get(HOLDOUT_KEY)
    return None if recorded is None else Holdout(recorded["key"], recorded["share"])


def calibrating_share(manifest: Mapping[str, Any]) -> float:
    """Return the share of evaluated nodes of known class that may calibrate a version."""
    holdout = holdout_of(manifest)
    return 1.0 if holdout is None else 1.0 - holdout.share


def held_out_keys(manifest: Mapping[str, Any], keys: Sequence[str]) -> frozenset[str]:
    """Return those of some record's keys that a version must never be calibrated with."""
    holdout = holdout_of(manifest)
    if holdout is None or not keys:
        return frozenset()
    inside = holdout.contains([typed_key_of(key) for key in keys]).tolist()
    return frozenset(key for key, held_out in zip(keys, inside, strict=True) if held_out)
