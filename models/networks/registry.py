"""Networks by the name that a configuration uses: one network, one file, one line here.

Nothing here imports torch. A network's module is imported by its name when it is trained or run as
a whole, its inference layers when a pass needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from ringfence.models.inference.layers.base import InferencePlan

__all__ = [
    "AUTO",
    "BLEND",
    "NETWORKS",
    "NETWORK_NAMES",
    "TREES",
    "TYPED_NETWORKS",
    "TYPED_SAGE",
    "NetworkEntry",
    "attribution",
    "has_layers",
    "inference_class",
    "is_blend",
    "is_trees",
    "least_scorer",
    "name_of",
    "needs_raw_columns",
    "network_class",
    "typed_network_class",
    "typed_planner",
    "typed_whole_pass",
    "whole_pass",
]

MODULES = "ringfence.models.networks"
LAYERS = "ringfence.models.inference.layers"
RUN_MODULE = "ringfence.models.networks.whole_pass:run_module"
RUN_TYPED_MODULE = "ringfence.models.networks.whole_pass:run_typed_module"
ATTRIBUTE = "ringfence.models.networks.attribution:attribute_output"
SELECT_TYPED = "ringfence.models.training.typed_data:select_typed"


@dataclass(frozen=True, slots=True)
class NetworkEntry:
    """A network as ``file:Class`` in `networks`, its inference layers likewise in their folder.

    A network whose ``layers`` are None runs as a full forward pass.
    """

    module: str
    layers: str | None = None


NETWORKS: dict[str, NetworkEntry] = {
    "gcn": NetworkEntry("gcn:GCN", "gcn:GCNPlan"),
    "gat": NetworkEntry("gat:GAT", "gat:GATPlan"),
    "appnp": NetworkEntry("appnp:APPNP", "appnp:APPNPPlan"),
    "sage": NetworkEntry("sage:SAGE", "sage:SAGEPlan"),
    "mlp": NetworkEntry("mlp:MLP", "mlp:MLPPlan"),
}
#: Their names as messages and the reference of the configuration list them.
NETWORK_NAMES = tuple(name.upper() for name in NETWORKS)
#: Networks for several labels; `models/inference/several_labels` computes those that have layers.
TYPED_NETWORKS: dict[str, NetworkEntry] = {
    "typed_sage": NetworkEntry("typed_sage:TypedSAGE", "plan:plan_typed"),
}
TYPED_LAYERS = "ringfence.models.inference.several_labels"
#: Boosted trees on own and neighbours' columns (`models/trees`): no network, but trained, saved and
#: run as one wherever a graph has raw columns.
TREES = "trees"
TYPED_SAGE = "typed_sage"
#: The mean of the probabilities of typed_sage and trees: one version with both.
BLEND = "blend"
#: Of these three the one with the lowest log loss on validation nodes; no version has this name.
AUTO = "auto"


def is_trees(name: str) -> bool:
    """Say whether a configuration or a manifest names trees instead of a network.

    >>> is_trees("Trees"), is_trees("typed_sage")
    (True, False)
    """
    return name.lower() == TREES


def is_blend(name: str) -> bool:
    """Say whether a configuration or a manifest names the mean of a network and trees."""
    return name.lower() == BLEND


def needs_raw_columns(name: str) -> bool:
    """Say whether a scorer reads raw columns alone, or chooses among some that do.

    >>> [needs_raw_columns(name) for name in ("auto", "blend", "trees", "GCN")]
    [True, True, True, False]
    """
    return name.lower() in (AUTO, BLEND, TREES)


def least_scorer(name: str) -> str:
    """Return what an engine must compute for a training to begin: typed_sage for auto.

    >>> least_scorer("auto"), least_scorer("blend")
    ('typed_sage', 'blend')
    """
    return TYPED_SAGE if name.lower() == AUTO else name


def inference_class(name: str) -> type[InferencePlan] | None:
    """Return the class of the network's inference layers; None where it has none.

    >>> inference_class("mlp").__name__
    'MLPPlan'
    """
    entry = NETWORKS.get(name.lower())
    if entry is None or entry.layers is None:
        return None
    plan: type[InferencePlan] = _find(f"{LAYERS}.{entry.layers}")
    return plan


def has_layers(name: str) -> bool:
    """Say whether a network is computed by inference layers, of one label or of several.

    >>> has_layers("gcn"), has_layers("typed_sage"), has_layers("their.module:Net")
    (True, True, False)
    """
    entry = (NETWORKS | TYPED_NETWORKS).get(name.lower())
    return entry is not None and entry.layers is not None


def network_class(name: str) -> type[torch.nn.Module] | None:
    """Return the module of the network called ``name``; None where there is no such network.

    >>> network_class("gcn").__name__
    'GCN'
    """
    entry = NETWORKS.get(name.lower())
    if entry is None:
        return None
    network: type[torch.nn.Module] = _find(f"{MODULES}.{entry.module}")
    return network


def name_of(network: Any) -> str:
    """Library only: the name under which exactly this class is registered; "" where it is not.

    A subclass may compute something else, and is not the network that it comes from.
    """
    path = f"{type(network).__module__}:{type(network).__qualname__}"
    names = [name for name, entry in NETWORKS.items() if f"{MODULES}.{entry.module}" == path]
    return names[0] if names else ""


def whole_pass() -> Any:
    """Return `networks.whole_pass.run_module`, which runs any module on the whole graph."""
    return _find(RUN_MODULE)


def typed_network_class(name: str) -> type[torch.nn.Module] | None:
    """Return the module for several labels called ``name``; None where there is no such one.

    >>> typed_network_class("typed_sage").__name__
    'TypedSAGE'
    """
    entry = TYPED_NETWORKS.get(name.lower())
    if entry is None:
        return None
    network: type[torch.nn.Module] = _find(f"{MODULES}.{entry.module}")
    return network


def typed_planner(name: str) -> Any:
    """Return the function that plans a network's typed inference; None where it has none.

    >>> typed_planner("typed_sage").__name__
    'plan_typed'
    """
    entry = TYPED_NETWORKS.get(name.lower())
    if entry is None or entry.layers is None:
        return None
    return _find(f"{TYPED_LAYERS}.{entry.layers}")


def typed_whole_pass() -> Any:
    """Return what runs any typed module on a whole graph, and what makes its arrays of it."""
    return _find(RUN_TYPED_MODULE), _find(SELECT_TYPED)


def attribution() -> Any:
    """Return `networks.attribution.attribute_output`, which runs one of PyG's explainers."""
    return _find(ATTRIBUTE)


def _find(path: str) -> Any:
    file, _, name = path.partition(":")
    return getattr(import_module(file), name)
