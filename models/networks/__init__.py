"""The networks: GCN, GAT, APPNP, GraphSAGE and MLP with the paper's sizes as defaults.

Modules that need torch are imported on first use; `networks.registry` does not need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ringfence.models.networks.registry import NETWORKS

if TYPE_CHECKING:
    from ringfence.models.networks.appnp import APPNP
    from ringfence.models.networks.edges import canonical_edges
    from ringfence.models.networks.factory import build
    from ringfence.models.networks.gat import GAT
    from ringfence.models.networks.gcn import GCN
    from ringfence.models.networks.mlp import MLP
    from ringfence.models.networks.sage import SAGE

__all__ = ["APPNP", "GAT", "GCN", "MLP", "NETWORKS", "SAGE", "build", "canonical_edges"]

_FILES = {name: name.lower() for name in ("APPNP", "GAT", "GCN", "MLP", "SAGE")}
_FILES |= {"build": "factory", "canonical_edges": "edges"}


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
