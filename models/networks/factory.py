"""A network by its name, with weights drawn from a seed."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ringfence.models.networks.custom import load_module
from ringfence.models.networks.registry import NETWORKS, network_class
from ringfence.models.seeding import seeded

__all__ = ["build"]


def build(
    name: str, in_features: int, classes: int, *, seed: int = 0, **options: Any
) -> torch.nn.Module:
    """The network called ``name``, its weights drawn from ``seed``; the global generator is kept.

    ``options`` are those of the network's constructor (``hidden``, ``dropout``, and ``heads`` for
    GAT, ``steps`` and ``teleport`` for APPNP). Case does not matter in ``name``. A name with a
    colon is a user's own module, ``package.module:Class``: see ``custom.load_module``.

    >>> build("gcn", in_features=5, classes=3, hidden=16).conv1
    GCNConv(5, 16)
    """
    if ":" in name:
        return load_module(name, in_features, classes, seed=seed, **options)
    module = network_class(name)
    if module is None:
        raise ValueError(
            f"no network is called {name!r}; there are {', '.join(NETWORKS)}, "
            'or a module of your own as "package.module:Class"'
        )
    _check_options(name, module, options)
    with seeded(seed):
        return module(in_features, classes, **options)


def _check_options(name: str, network: type[torch.nn.Module], options: dict[str, Any]) -> None:
    known = list(inspect.signature(network).parameters)[2:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"{name} has no option {', '.join(unknown)}; it takes {', '.join(known)}")
