"""What a promise takes besides alpha, as the configuration and the record of a run have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GROUP = "group"
"""The setting that names the property whose values are the groups."""


@dataclass(frozen=True, slots=True)
class PromiseOptions:
    """What a promise takes besides alpha: alphas of single classes, the property of the groups."""

    classes: Mapping[str, float] = field(default_factory=dict)
    group: str | None = None

    @classmethod
    def recorded(cls, options: Mapping[str, Any]) -> PromiseOptions:
        """Return those that a run has on record, in its column `options`."""
        classes = {name: float(alpha) for name, alpha in (options.get("classes") or {}).items()}
        return cls(classes, options.get(GROUP))
