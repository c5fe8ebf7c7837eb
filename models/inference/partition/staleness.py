"""What a partitioned pass must recompute, just from the graph's versions, without any table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.changes import stamp_altered
from ringfence.models.inference.graph import (
    InferenceGraph,
    in_neighbours,
    newest_change,
    receivers,
)
from ringfence.models.inference.layers.base import InferencePlan, MessagePlan

__all__ = ["newest_inputs", "rows_around"]

Ints = NDArray[np.int64]

ROWS_AT_ONCE = 65_536
NEVER = -1


def rows_around(plan: InferencePlan, graph: InferenceGraph, wanted: Ints) -> NDArray[np.bool_]:
    """Return which rows' first layer the outputs at `wanted` need, bool [n].

    >>> from ringfence.models.inference.graph import graph_of
    >>> class Plan: first_width, reaches_everyone = 4, False
    >>> rows_around(Plan, graph_of(np.array([[0], [1]]), nodes=3), np.array([1]))
    array([ True,  True, False])
    """
    if plan.reaches_everyone:
        return np.ones(graph.size, np.bool_)
    marks = np.zeros(graph.size, np.bool_)
    marks[wanted] = True
    if plan.first_width:
        for start in range(0, len(wanted), ROWS_AT_ONCE):
            marks[in_neighbours(graph, wanted[start : start + ROWS_AT_ONCE]).sources] = True
    return marks


def newest_inputs(plan: InferencePlan, graph: InferenceGraph, rows: Ints) -> Ints:
    """Return the version at which something that goes into the first layer at `rows` changed [n].

    A row that was computed at that version or later is up to date. GCN: a neighbour's number of
    relationships counts too, since it scales its messages.
    """
    altered, at = graph.altered.rows, graph.altered.versions
    if not plan.first_width:
        newest = np.full(graph.size, NEVER, np.int64)
        np.maximum.at(newest, altered, at)
        return newest[rows]
    if isinstance(plan, MessagePlan):
        return newest_change(graph, rows, stamp_altered(graph, altered, at))
    to = receivers(graph, altered)
    stamped: NDArray[Any] = np.concatenate([altered, to.sources])
    return stamp_altered(graph, stamped, np.concatenate([at, np.repeat(at, to.counts())]))[rows]
