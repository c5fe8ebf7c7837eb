"""Whether this installation can run a model version's network.

ringfence's own networks, trees and their mean run without torch. A module of a user's own is run by
torch, which the extra `train` brings.
"""

from __future__ import annotations

from ringfence.connector.extras import require_imports
from ringfence.models.networks.registry import has_layers, is_blend, is_trees

__all__ = ["require_network_packages"]


def require_network_packages(network: str) -> None:
    """Raise ConfigError where `network` is run by torch, and torch is not installed.

    >>> require_network_packages("gcn")
    >>> require_network_packages("blend")
    """
    if not (is_trees(network) or is_blend(network) or has_layers(network)):
        require_imports("train", f"to run {network}, which is no network of ringfence's own")
