"""The mirror's relationships as the networks' kernels take them."""

from __future__ import annotations

import numpy as np

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.models.inference import InferenceGraph, leave_out_types
from ringfence.models.inference.graph import AlteredFeatures, RemovedEntries


def inference_graph(mirror: Mirror, mapping: GraphMapping) -> InferenceGraph:
    """Return the mirror's relationships as the networks' kernels take them.

    Nothing is copied, unless some types are set only after evaluation: those are left out.
    """
    adjacency = mirror.adjacency
    nodes, offsets, others, codes = adjacency.late_part()
    both_ways = [relation.undirected for relation in mapping.relations]
    base = adjacency.offsets.array if adjacency.offsets.rows else np.zeros(1, np.int64)
    graph = InferenceGraph(
        base, adjacency.others.array, adjacency.codes.array, nodes, offsets, others, codes,
        mirror.size, np.array(both_ways, np.bool_), adjacency.changed, mirror.version,
        RemovedEntries(*adjacency.removed_part()), AlteredFeatures(*mirror.patches.altered()),
        adjacency.base_number,
    )  # fmt: skip
    cut = [at for at, relation in enumerate(mapping.relations) if relation.after_evaluation]
    return leave_out_types(graph, cut) if cut else graph


def inner_types(mapping: GraphMapping) -> list[int] | None:
    """Return the types between nodes of the classified label, which have outputs; None: all."""
    inner = mapping.inner_relations
    return inner if len(inner) < len(mapping.relations) else None


def inner_graph(graph: InferenceGraph, mapping: GraphMapping) -> InferenceGraph:
    """Return the relationships between nodes that have outputs, as a graph of its own: a copy."""
    inner = inner_types(mapping)
    if inner is None:
        return graph
    outer = [index for index in range(len(mapping.relations)) if index not in inner]
    return leave_out_types(graph, outer)
