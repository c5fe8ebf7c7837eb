"""PyG's explainers through `ringfence explain --why`, for users' own modules.

A module without ringfence's kernels runs as a whole, so that asking about every neighbour would be
a pass over the whole graph each time. An explainer of PyG's needs one training of masks. torch is
imported here alone, by name, on first use.
"""

from __future__ import annotations

from functools import singledispatch
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from ringfence.connector.errors import ConfigError
from ringfence.connector.extras import require_imports
from ringfence.jobs.explanation.deadline import Deadline
from ringfence.jobs.explanation.explained_node import ExplainedNode
from ringfence.jobs.explanation.reasons import COLUMN, NEIGHBOUR, Reason, Reasons
from ringfence.jobs.inference import read_encoded
from ringfence.jobs.project.columns.column_encoders import (
    ColumnEncoders,
    PlainNetwork,
    TypedNetwork,
    network_of,
)
from ringfence.jobs.project.network_inputs import edge_index
from ringfence.models.networks.registry import (
    attribution,
    is_blend,
    is_trees,
    typed_whole_pass,
)
from ringfence.models.schema import CLASSIFIED

ATTRIBUTION = "ringfence.models.networks.attribution"


def refuse_method(network: str) -> NoReturn:
    """Refuse exact answers for a module that has no kernels."""
    raise ConfigError(
        found=f"the network {network} is a module of your own, which has no exact passes",
        needed="one of PyG's explainers",
        next_step="ringfence explain KEY --why --explainer GNNExplainer",
    )


def _refuse_trees(method: str, network: str) -> NoReturn:
    what = "the mean of a network and boosted trees" if is_blend(network) else "boosted trees"
    raise ConfigError(
        found=f"{method} needs gradients, and this version is {what}",
        needed="exact answers: trees are evaluated again without the neighbour or the column",
        next_step="ringfence explain KEY --why",
    )


def attribute(node: ExplainedNode, method: str, graph: str, deadline: Deadline) -> Reasons:
    """Return the weights that one of PyG's explainers gives neighbours and columns.

    An explainer that is not done when the time is over gives no partial answer.
    """
    network = network_of(node.model)
    if is_trees(network.name) or is_blend(network.name):
        _refuse_trees(method, network.name)
    require_imports("train", f"to run {method}, which is PyG's")
    try:
        weights, columns = _ask(network, node, method, deadline)
    except TimeoutError:
        raise ConfigError(
            found=deadline.describe(f"some passes of {method}: no neighbour or column was weighed"),
            needed="more time: the explainer runs the module as a whole a hundred times",
            next_step="ringfence explain KEY --why --seconds 600",
        ) from None
    except (ValueError, TypeError, RuntimeError) as error:
        raise ConfigError(
            found=f"{method} can't explain {node.model.network}: {error}",
            needed="layers that PyG's explainers know (torch_geometric.nn.MessagePassing; with "
            "several labels inside torch_geometric.nn.HeteroConv), and GNNExplainer, or "
            "AttentionExplainer for layers with attention",
        ) from None
    parts = {
        question.without[0][0]: part
        for question, part in node.questions(len(node.heard))
        if part.kind == NEIGHBOUR
    }
    reasons = [
        Reason(parts[other], weight=weight) for other, weight in weights.items() if other in parts
    ]
    named = [part for _, part in node.questions(0) if part.kind == COLUMN]
    reasons += [
        Reason(part, weight=float(weight)) for part, weight in zip(named, columns, strict=False)
    ]
    reasons.sort(
        key=lambda reason: (-(reason.weight or 0.0), reason.part.kind, reason.part.describe())
    )
    return Reasons(
        graph=graph,
        model=node.model.version,
        classes=node.model.classes,
        p_values=(),
        levels=(),
        classes_in_set=(),
        neighbours=len(node.heard),
        asked=len(weights),
        reasons=tuple(reasons),
        method=method,
    )


@singledispatch
def _ask(
    network: object, node: ExplainedNode, method: str, deadline: Deadline
) -> tuple[dict[int, float], list[float]]:
    """Return the weights of neighbours, by row, and of columns."""
    raise TypeError(network)


@_ask.register(PlainNetwork)
def _ask_plain(
    _network: PlainNetwork, node: ExplainedNode, method: str, deadline: Deadline
) -> tuple[dict[int, float], list[float]]:
    model, mirror = node.model, node.mirror
    inputs = import_module(ATTRIBUTION).ModuleInputs(
        model.scaling(mirror.features), edge_index(mirror, node.workspace.mapping)
    )
    attributed = _attributed(node, method, model.weights, inputs, node.row, deadline)
    return {source: weight for _, source, weight in attributed.edges}, list(attributed.columns)


@_ask.register(TypedNetwork)
def _ask_typed(
    network: TypedNetwork, node: ExplainedNode, method: str, deadline: Deadline
) -> tuple[dict[int, float], list[float]]:
    mirror, schema, encoders = node.mirror, network.schema, network.encoders
    graph = network.graph(mirror, node.graph)
    features = read_encoded(node.workspace.tables, node.model, mirror, graph, encoders)
    rows = [np.flatnonzero(graph.labels == label) for label in range(len(features))]
    _, select = typed_whole_pass()
    data = select(schema, features, mirror.edges, rows, mirror.size)
    inputs = import_module(ATTRIBUTION).TypedInputs(data)
    place = int(graph.places[node.row])
    attributed = _attributed(node, method, network.weights, inputs, place, deadline)
    channels = schema.channels
    heard: dict[int, float] = {}
    for channel, source, weight in attributed.edges:
        row = int(rows[channels[channel].source][source])
        heard[row] = max(weight, heard.get(row, 0.0))
    return heard, _by_raw_column(encoders, node, attributed.columns)


def _by_raw_column(
    encoders: ColumnEncoders, node: ExplainedNode, weights: tuple[float, ...]
) -> list[float]:
    """The largest weight among the encoded columns of each raw one."""
    names = encoders.raw_names(CLASSIFIED)
    largest = dict.fromkeys((name for _, name in node.columns), 0.0)
    for raw, weight in zip(names, weights, strict=False):
        if raw in largest:
            largest[raw] = max(largest[raw], float(weight))
    return list(largest.values())


def _attributed(
    node: ExplainedNode, method: str, weights: Any, inputs: Any, place: int, deadline: Deadline
) -> Any:
    model = node.model
    return attribution()(
        method,
        model.network,
        weights,
        len(model.classes),
        model.options,
        inputs,
        place,
        model.manifest["seed"],
        deadline.over,
    )
