"""One forward pass over a graph that grew: outputs where they are wanted, work where it changed.

What NodeEx and EdgeEx need are the outputs at the new nodes and at the calibration nodes. Those
need the first layer's results at their neighbours, which are kept from pass to pass and recomputed
if the neighbour's own neighbourhood changed since. Every row is computed by the same kernel from
the same neighbours in the same order, whether alone or with all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.changes import (
    Change,
    fill_first,
    find_altered,
    find_change,
    without_neighbours,
)
from ringfence.models.inference.cost import Cost, Way
from ringfence.models.inference.graph import InferenceGraph, InNeighbours, in_neighbours
from ringfence.models.inference.input_checks import check_tables, check_wanted
from ringfence.models.inference.layers.base import InferencePlan, MessagePlan
from ringfence.models.inference.messages import degree_scale, mark_rows
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import NEVER_COMPUTED, Tables, empty_tables

__all__ = ["Outputs", "forward", "forward_whole"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Logits at the wanted rows [m, classes], and how they came about.

    refreshed: rows of the first layer that were computed. needed: rows that had to be up to date.
    """

    logits: Float32s
    way: Way
    reason: str
    refreshed: int
    needed: int
    cost: Cost


def forward(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    wanted: Ints,
    tables: Tables,
    workers: int = 1,
) -> Outputs:
    """Return the network's outputs on the graph as it is now, at ``wanted``.

    Exact: equal to `forward_whole` on the same graph. Stale rows of ``tables`` that the outputs
    need are recomputed; other stale rows are left for the pass that needs them.

    Args:
        plan: from `plan_of`.
        graph: relationships, with the version at which each node's last changed.
        features: float32 [n, d], an array or a mapped file; only rows that are needed are read.
        wanted: rows whose outputs are wanted, int64 [m].
        tables: from the last pass over this graph with this plan, or empty ones.
        workers: threads.
    """
    _check(graph, features, tables)
    rows = np.ascontiguousarray(wanted, np.int64)
    check_wanted(rows, graph)
    pool = Pool(workers)
    try:
        return _forward(plan, graph, features, rows, tables, pool)
    finally:
        pool.close()


def forward_whole(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    tables: Tables | None = None,
    workers: int = 1,
) -> Float32s:
    """Library only: the network's outputs at all nodes [n, classes]; ``tables`` are filled."""
    kept = empty_tables(plan, graph.size) if tables is None else tables
    _check(graph, features, kept)
    pool = Pool(workers)
    try:
        everyone = in_neighbours(graph, np.arange(graph.size))
        _refill(plan, graph, features, everyone, kept, pool)
        return plan.outputs(everyone, kept.scale, kept.second, pool)
    finally:
        pool.close()


def _forward(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    wanted: Ints,
    tables: Tables,
    pool: Pool,
) -> Outputs:
    new = tables.version == NEVER_COMPUTED
    near = in_neighbours(graph, wanted) if plan.first_width else without_neighbours(wanted)
    needed = np.flatnonzero(mark_rows(graph.size, np.concatenate([wanted, near.sources])))
    change = find_change(plan, graph, features, tables, needed, new, pool)
    if new or plan.reaches_everyone or change.cost.way == "full":
        everyone = in_neighbours(graph, np.arange(graph.size))
        refreshed = _whole(plan, graph, features, everyone, tables, pool, needed)
        way: Way = "full"
    else:
        refreshed = _refresh(plan, graph, features, tables, pool, change, needed)
        way = "incremental"
    tables.computed[needed] = tables.version = graph.version
    if plan.reaches_everyone:
        logits = plan.outputs(everyone, tables.scale, tables.second, pool)[wanted]
    else:
        logits = plan.outputs(near, tables.scale, tables.second, pool)
    return Outputs(logits, way, _reason(plan, new, way), refreshed, len(needed), change.cost)


def _refresh(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    tables: Tables,
    pool: Pool,
    change: Change,
    needed: Ints,
) -> int:
    """Make the rows that changed; return how many."""
    rows = len(change.stale)
    if change.rescaled is not None and isinstance(plan, MessagePlan):
        change.rescaled.exchange(plan, tables, pool)
        tables.give_slots(change.stale, needed)
        plan.second(change.rescaled.gathered, features, tables, pool)
        rows += len(change.rescaled.exchanged) + len(change.rescaled.gathered.rows)
    around = (
        in_neighbours(graph, change.stale) if plan.first_width else without_neighbours(change.stale)
    )
    plan.second(around, features, tables, pool)
    return rows


def _whole(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    everyone: InNeighbours,
    tables: Tables,
    pool: Pool,
    needed: Ints,
) -> int:
    """Make every row; APPNP keeps the rows whose features it has seen."""
    if plan.reaches_everyone and tables.version != NEVER_COMPUTED:
        stale = find_altered(graph, tables, np.arange(graph.size))
        plan.second(without_neighbours(stale), features, tables, pool)
        tables.computed[stale] = graph.version
        return len(stale)
    if isinstance(plan, MessagePlan):
        tables.forget_sums()
        tables.give_slots(needed, needed)
    _refill(plan, graph, features, everyone, tables, pool)
    return graph.size


def _refill(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    everyone: InNeighbours,
    tables: Tables,
    pool: Pool,
) -> None:
    n = graph.size
    tables.rows = 0
    tables.scale[:n] = degree_scale(everyone.counts())
    fill_first(plan, features, tables, n)
    plan.second(everyone, features, tables, pool)
    tables.computed[:n] = tables.version = graph.version


def _reason(plan: InferencePlan, new: bool, way: Way) -> str:
    if new:
        return "nothing was kept from an earlier pass"
    if plan.reaches_everyone:
        return plan.reach
    if way == "full":
        return "so much changed that computing everything is cheaper"
    return "only what changed was computed again"


def _check(graph: InferenceGraph, features: Any, tables: Tables) -> None:
    if len(features) < graph.size or tables.room < graph.size:
        raise ValueError(
            f"the graph has {graph.size} nodes, but there are features of {len(features)} and "
            f"tables for {tables.room}; both need a row per node"
        )
    check_tables(tables, graph)
