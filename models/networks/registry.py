"""Networks by the name that a configuration uses: one network, one file, one line here."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from ringfence.models.networks.appnp import APPNP
from ringfence.models.networks.custom import load_module
from ringfence.models.networks.gat import GAT
from ringfence.models.networks.gcn import GCN
from ringfence.models.networks.mlp import MLP
from ringfence.models.networks.sage import SAGE
from ringfence.models.seeding import seeded

if TYPE_CHECKING:
    from ringfence.models.inference.layers.base import InferencePlan

__all__ = ["NETWORKS", "NetworkEntry", "build", "inference_class"]

LAYERS = "ringfence.models.inference.layers"


@dataclass(frozen=True, slots=True)
class NetworkEntry:
    """A network's module, and its inference layers as ``file:Class`` in `inference.layers`.

    The layers are imported when a pass asks for them: training needs no compiled kernels. A
    network with None runs as a full forward pass.
    """

    module: type[torch.nn.Module]
    layers: str | None = None


NETWORKS: dict[str, NetworkEntry] = {
    "gcn": NetworkEntry(GCN, "gcn:GCNPlan"),
    "gat": NetworkEntry(GAT, "gat:GATPlan"),
    "appnp": NetworkEntry(APPNP, "appnp:APPNPPlan"),
    "sage": NetworkEntry(SAGE, "sage:SAGEPlan"),
    "mlp": NetworkEntry(MLP, "mlp:MLPPlan"),
}


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
    entry = NETWORKS.get(name.lower())
    if entry is None:
        raise ValueError(
            f"no network is called {name!r}; there are {', '.join(NETWORKS)}, "
            'or a module of your own as "package.module:Class"'
        )
    _check_options(name, entry.module, options)
    with seeded(seed):
        return entry.module(in_features, classes, **options)


def inference_class(network: torch.nn.Module) -> type[InferencePlan] | None:
    """Return the class of the network's inference layers; None where it has none.

    >>> inference_class(MLP(5, 3)).__name__
    'MLPPlan'
    """
    layers = {entry.module: entry.layers for entry in NETWORKS.values()}.get(type(network))
    if layers is None:
        return None
    file, _, class_name = layers.partition(":")
    plan_class: type[InferencePlan] = getattr(import_module(f"{LAYERS}.{file}"), class_name)
    return plan_class


def _check_options(name: str, network: type[torch.nn.Module], options: dict[str, Any]) -> None:
    known = list(inspect.signature(network).parameters)[2:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"{name} has no option {', '.join(unknown)}; it takes {', '.join(known)}")
