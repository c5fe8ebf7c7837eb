"""PyG's explainers through `ringfence explain --why`, for users' own modules.

A module without ringfence's kernels runs as a whole, so that asking about every neighbour would be
a pass over the whole graph each time. An explainer of PyG's needs one training of masks. torch is
imported here alone, by name, when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from ringfence.connector.errors import ConfigError
from ringfence.jobs.explanation.asked_node import AskedNode
from ringfence.jobs.explanation.deadline import Deadline
from ringfence.jobs.explanation.reasons import COLUMN, NEIGHBOUR, Reason, Reasons
from ringfence.jobs.project.network_inputs import edge_index
from ringfence.jobs.project.typed_inputs import ENCODER, MANIFEST_KEY, TypedEncoders
from ringfence.jobs.scoring.typed_inference import read_encoded
from ringfence.models.inference.typed import typed_graph
from ringfence.models.networks.registry import attribution, typed_whole_pass
from ringfence.models.schema import CLASSIFIED, TypedSchema

ATTRIBUTION = "ringfence.models.networks.attribution"


def refuse_method(network: str) -> NoReturn:
    """Refuse exact answers for a module that has no kernels."""
    raise ConfigError(
        found=f"the network {network} is a module of your own, which has no exact passes",
        needed="one of PyG's explainers",
        next_step="ringfence explain KEY --why --explainer GNNExplainer",
    )


def attribute(node: AskedNode, method: str, graph: str, deadline: Deadline) -> Reasons:
    """Return the weights that one of PyG's explainers gives neighbours and columns.

    An explainer that is not done when the time is over has no part of an answer to give.
    """
    ask = _ask_typed if node.mirror.typed is not None else _ask_plain
    try:
        weights, columns = ask(node, method, deadline)
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
    reasons.sort(key=lambda one: (-(one.weight or 0.0), one.part.kind, one.part.describe()))
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


def _ask_plain(
    node: AskedNode, method: str, deadline: Deadline
) -> tuple[dict[int, float], list[float]]:
    model, mirror = node.model, node.mirror
    inputs = import_module(ATTRIBUTION).ModuleInputs(
        model.scaling(mirror.features), edge_index(mirror, node.workspace.mapping)
    )
    found = _attributed(node, method, model.weights, inputs, node.row, deadline)
    return {source: weight for _, source, weight in found.edges}, list(found.columns)


def _ask_typed(
    node: AskedNode, method: str, deadline: Deadline
) -> tuple[dict[int, float], list[float]]:
    model, mirror, typed = node.model, node.mirror, node.mirror.typed
    if typed is None:
        raise ValueError("the mirror has one label")
    facts = model.manifest[MANIFEST_KEY]
    schema = TypedSchema.from_json(facts["schema"])
    encoders = TypedEncoders.restore(facts, model.weights)
    graph = typed_graph(node.graph, schema, typed.labels)
    features = read_encoded(node.workspace.tables, model, mirror, graph, encoders)
    rows = [np.flatnonzero(graph.labels == label) for label in range(len(features))]
    _, select = typed_whole_pass()
    data = select(schema, features, mirror.edges, rows, mirror.size)
    inputs = import_module(ATTRIBUTION).TypedInputs(data)
    weights = {name: one for name, one in model.weights.items() if not name.startswith(ENCODER)}
    place = int(graph.places[node.row])
    found = _attributed(node, method, weights, inputs, place, deadline)
    channels = schema.channels
    heard: dict[int, float] = {}
    for channel, source, weight in found.edges:
        row = int(rows[channels[channel].source][source])
        heard[row] = max(weight, heard.get(row, 0.0))
    return heard, _by_raw_column(encoders, node, found.columns)


def _by_raw_column(
    encoders: TypedEncoders, node: AskedNode, weights: tuple[float, ...]
) -> list[float]:
    """The largest weight among the encoded columns of each raw one."""
    names = encoders.tables[CLASSIFIED].names
    found = dict.fromkeys((name for _, name in node.columns), 0.0)
    for encoded, weight in zip(names, weights, strict=False):
        raw = encoded.partition(" / ")[0]
        if raw in found:
            found[raw] = max(found[raw], float(weight))
    return list(found.values())


def _attributed(
    node: AskedNode, method: str, weights: Any, inputs: Any, place: int, deadline: Deadline
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
