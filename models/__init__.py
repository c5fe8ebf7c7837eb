"""Computing on arrays: networks, inference, conformity scores, prediction sets, guarantees.

No function here reads a file, a clock, a database or global random state. A function marked
"Library only" in its first line is public and tested, but no job calls it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

PUBLIC = {
    "conformal": ("p_values", "prediction_sets", "threshold"),
    "guarantee": ("coverage_band", "coverage_p_value"),
    "networks": ("APPNP", "GAT", "GCN", "MLP", "SAGE"),
    "scores": ("aps", "daps", "raps", "tps"),
}
"""The names that stay where they are, by folder; a folder is imported when a name is asked for."""

__all__ = sorted(name for names in PUBLIC.values() for name in names)


def __getattr__(name: str) -> Any:
    for folder, names in PUBLIC.items():
        if name in names:
            return getattr(import_module(f"ringfence.models.{folder}"), name)
    raise AttributeError(f"module 'ringfence.models' has no attribute {name!r}")
