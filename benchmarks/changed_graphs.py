"""Graphs that lose nodes and relationships or get other features, as the forward pass sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ringfence.models.inference.graph import (
    AlteredFeatures,
    InferenceGraph,
    RemovedEntries,
    graph_of,
)

Ints = np.ndarray[Any, Any]


def without(graph: InferenceGraph, ends: Ints, gone: Ints, version: int) -> InferenceGraph:
    """``graph`` without the relationships ``ends[:, gone]``; their parallels go with them."""
    part = graph_of(ends[:, gone], graph.size)  # their entries at both ends, sorted
    nodes = np.flatnonzero(np.diff(part.offsets))
    changed = graph.changed.copy()
    changed[nodes] = version
    removed = RemovedEntries(
        nodes, np.append(part.offsets[nodes], part.offsets[-1]), part.others, part.codes
    )
    return replace(graph, removed=removed, changed=changed, version=version)


def remaining(ends: Ints, gone: Ints, nodes: int) -> Ints:
    """Relationships but those at ``gone`` and their parallels."""
    code = ends[0] * nodes + ends[1]
    return ends[:, ~np.isin(code, code[gone])]


def altered(graph: InferenceGraph, rows: Ints, version: int) -> InferenceGraph:
    """``graph`` whose nodes ``rows`` have other features from ``version`` on."""
    versions = np.full(len(rows), version, np.int64)
    return replace(graph, altered=AlteredFeatures(rows, versions), version=version)
