"""Networks by the name that a configuration uses."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ringfence.models.custom import load
from ringfence.models.networks.appnp import APPNP
from ringfence.models.networks.gat import GAT
from ringfence.models.networks.gcn import GCN
from ringfence.models.networks.mlp import MLP
from ringfence.models.networks.sage import SAGE
from ringfence.models.seeded import seeded

__all__ = ["NETWORKS", "build"]

NETWORKS: dict[str, type[torch.nn.Module]] = {
    "gcn": GCN,
    "gat": GAT,
    "appnp": APPNP,
    "sage": SAGE,
    "mlp": MLP,
}


def build(
    name: str, in_features: int, classes: int, *, seed: int = 0, **options: Any
) -> torch.nn.Module:
    """The network called ``name``, its weights drawn from ``seed``; the global generator is kept.

    ``options`` are those of the network's constructor (``hidden``, ``dropout``, and ``heads`` for
    GAT, ``steps`` and ``teleport`` for APPNP). Case does not matter in ``name``. A name with a
    colon is a user's own module, ``package.module:Class``: see ``custom.load``.

    >>> build("gcn", in_features=5, classes=3, hidden=16).conv1
    GCNConv(5, 16)
    """
    if ":" in name:
        return load(name, in_features, classes, seed=seed, **options)
    network = NETWORKS.get(name.lower())
    if network is None:
        raise ValueError(
            f"no network is called {name!r}; there are {', '.join(NETWORKS)}, "
            'or a module of your own as "package.module:Class"'
        )
    _check_options(name, network, options)
    with seeded(seed):
        return network(in_features, classes, **options)


def _check_options(name: str, network: type[torch.nn.Module], options: dict[str, Any]) -> None:
    known = list(inspect.signature(network).parameters)[2:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"{name} has no option {', '.join(unknown)}; it takes {', '.join(known)}")
