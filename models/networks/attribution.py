"""Weights of edges and columns that PyG's explainers give a module's output at a node.

For users' own modules, whatever their layers are. The weights are estimates by gradient descent on
masks, or the attention itself; the seed fixes them. They are not counterfactuals: a weight says how
much the explainer keeps of an edge, not what a p-value would be without it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence.models.networks import pyg as _pyg
from ringfence.models.networks.factory import build
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.seeding import seeded
from ringfence.models.training.typed_data import TypedData

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch_geometric.explain import Explainer
    from torch_geometric.explain.algorithm.attention_explainer import AttentionExplainer
    from torch_geometric.explain.algorithm.gnn_explainer import GNNExplainer

__all__ = ["EXPLAINERS", "ModuleInputs", "OutputWeights", "TypedInputs", "attribute_output"]

Float32s = NDArray[np.float32]
EPOCHS = 100


@dataclass(frozen=True, slots=True)
class _Algorithm:
    """How an explainer is made, and whether it weighs columns too."""

    make: Callable[[], Any]
    columns: bool


EXPLAINERS: dict[str, _Algorithm] = {
    "GNNExplainer": _Algorithm(lambda: GNNExplainer(epochs=EPOCHS), columns=True),
    "AttentionExplainer": _Algorithm(AttentionExplainer, columns=False),
}
"""By the name that PyG gives them; a new one is one line."""


@dataclass(frozen=True, slots=True)
class ModuleInputs:
    """One label: standardised features [n, d] and edges [2, e]."""

    features: Float32s
    edges: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TypedInputs:
    """Several labels: columns and edges of the whole graph; the node's label stands first."""

    data: TypedData


@dataclass(frozen=True, slots=True)
class OutputWeights:
    """Weights of a node's incoming edges: (channel, source, weight); and of its columns [d].

    The channel is 0 for one label; sources are places among the nodes of the channel's source.
    """

    edges: tuple[tuple[int, int, float], ...]
    columns: tuple[float, ...]


def attribute_output(
    method: str,
    name: str,
    weights: Mapping[str, NDArray[Any]],
    classes: int,
    options: Mapping[str, Any],
    inputs: ModuleInputs | TypedInputs,
    node: int,
    seed: int,
    is_late: Callable[[], bool] = lambda: False,
) -> OutputWeights:
    """Return what ``method`` says of the module's output at ``node``; ValueError where it can't.

    Args:
        method: one of `EXPLAINERS`.
        name: of the network, ``package.module:Class`` for a user's own.
        weights: of its ``state_dict``, by name.
        classes: number of outputs.
        options: of its constructor.
        inputs: the whole graph.
        node: place of the node among those of its label.
        seed: of the explainer's first masks.
        is_late: called before each pass of the module; TimeoutError once it returns True.
    """
    if method not in EXPLAINERS:
        raise ValueError(f"no explainer is called {method}; there are {', '.join(EXPLAINERS)}")
    algorithm = EXPLAINERS[method]
    network = _network(name, classes, options, inputs)
    network.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
    if isinstance(inputs, TypedInputs):
        _require_typed_layers(name, network)
        network = _WithAllMasks(network, inputs.data.schema.edge_types)

    def stop_if_late(*_given: Any) -> None:
        if is_late():
            raise TimeoutError

    network.register_forward_pre_hook(stop_if_late)
    explainer = Explainer(
        network.eval(),
        algorithm.make(),
        explanation_type="model",
        node_mask_type="attributes" if algorithm.columns else None,
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    with seeded(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(inputs, TypedInputs):
            return _typed_weights(explainer, inputs.data, node)
        x, edges = torch.from_numpy(inputs.features), torch.from_numpy(inputs.edges)
        explanation = explainer(x, edges, index=node)
    incoming = np.flatnonzero(inputs.edges[1] == node)
    mask = explanation.edge_mask.detach().numpy()
    heard = [(0, int(inputs.edges[0, at]), float(mask[at])) for at in incoming]
    column_weights = explanation.node_mask[node].tolist() if "node_mask" in explanation else []
    return OutputWeights(tuple(heard), tuple(column_weights))


def _network(
    name: str, classes: int, options: Mapping[str, Any], inputs: ModuleInputs | TypedInputs
) -> torch.nn.Module:
    if isinstance(inputs, ModuleInputs):
        return build(name, inputs.features.shape[1], classes, **options)
    widths = [rows.shape[1] for rows in inputs.data.features]
    return build_typed(name, inputs.data.schema, widths, classes, **options)


def _require_typed_layers(name: str, network: torch.nn.Module) -> None:
    """Refuse a module whose messages PyG's masks of edge types would not reach."""
    reached = {
        id(layer)
        for holder in network.modules()
        if isinstance(holder, torch.nn.ModuleDict)
        for part in holder.values()
        for layer in part.modules()
    }
    layers = [module for module in network.modules() if isinstance(module, _pyg.MessagePassing)]
    outside = [type(inner).__name__ for inner in layers if id(inner) not in reached]
    if outside:
        raise ValueError(
            f"{name} has {outside[0]} outside HeteroConv: PyG knows no relationship type of it"
        )
    if not layers:
        raise ValueError(f"{name} has no message-passing layer of PyG's")


class _Heard(_pyg.MessagePassing):  # type: ignore[misc]
    """The sum of the messages of a relationship type, one number per receiver."""

    def __init__(self) -> None:
        super().__init__(aggr="sum")

    def forward(self, x: tuple[torch.Tensor, torch.Tensor], edge_index: torch.Tensor) -> Any:
        sources = x[0].sum(dim=1, keepdim=True)
        return self.propagate(edge_index, x=sources, size=(len(x[0]), len(x[1])))

    def message(self, x_j: torch.Tensor) -> torch.Tensor:
        return x_j


class _WithAllMasks(torch.nn.Module):
    """A module of several labels that gives every mask a gradient, even if it is zero.

    GNNExplainer refuses modules that leave out a label or a relationship type, as a last layer
    usually does. Zero times the messages of each type is added here: the outputs stay the same, and
    a type that the module does not use has a zero gradient, which the explainer takes for unused.
    """

    def __init__(self, network: torch.nn.Module, kinds: Sequence[tuple[str, str, str]]) -> None:
        super().__init__()
        self.network = network
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.heard = _pyg.HeteroConv({kind: _Heard() for kind in kinds}, aggr="sum")

    def forward(self, x: dict[str, torch.Tensor], edges: dict[Any, torch.Tensor]) -> Any:
        both = {kind: (x[kind[0]], x[kind[2]]) for kind in edges}
        unused = sum(rows.sum() for rows in x.values())
        for kind, pair in edges.items():
            unused = unused + self.heard.convs[kind](both[kind], pair).sum()
        return self.network(x, edges) + 0.0 * unused


def _typed_weights(explainer: Any, data: TypedData, node: int) -> OutputWeights:
    x, edges = data.tensors()
    explanation = explainer(x, edges, index=node)
    schema, column_weights = data.schema, []
    heard: list[tuple[int, int, float]] = []
    weighed = not any(pair.shape[1] for pair in edges.values())
    for place, kind in enumerate(schema.edge_types):
        if kind[2] != schema.labels[0] or not edges[kind].shape[1]:
            continue
        if "edge_mask" not in explanation[kind]:
            continue  # a type that no attention layer reads
        weighed = True
        mask = explanation[kind].edge_mask.detach().numpy()
        pair = edges[kind].numpy()
        heard += [
            (place, int(pair[0, at]), float(mask[at])) for at in np.flatnonzero(pair[1] == node)
        ]
    if not weighed:
        raise ValueError("the explainer weighed no relationship: there is no layer with attention")
    stored = explanation[schema.labels[0]]
    if "node_mask" in stored:
        column_weights = stored.node_mask[node].tolist()
    return OutputWeights(tuple(heard), tuple(column_weights))
