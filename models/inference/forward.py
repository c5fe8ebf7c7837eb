"""One forward pass over a graph that grew: outputs where they are wanted, work where it changed.

What NodeEx and EdgeEx need are the outputs at the new nodes and at the calibration nodes. Those
need the first layer's results at their neighbours, which are kept from pass to pass and made again
where the neighbour's own surroundings changed since. Every row is computed by the same kernel from
the same neighbours in the same order, whether alone or with all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.border import check_tables, check_wanted
from ringfence.models.inference.cost import Cost, Way
from ringfence.models.inference.graph import (
    Incoming,
    InferenceGraph,
    incoming,
    incoming_counts,
    max_incoming,
)
from ringfence.models.inference.layers.base import InferencePlan, MessagePlan
from ringfence.models.inference.messages import (
    RescaledMessages,
    degree_scale,
    fill_messages,
    mark_rows,
    rescale_messages,
)
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import NEVER_COMPUTED, Tables, empty_tables

__all__ = ["Outputs", "forward", "forward_whole"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

TRANSFORM_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Outputs:
    """Logits at the wanted rows [m, classes], and how they came about.

    refreshed: rows of the first layer that were computed. needed: rows that had to be right.
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

    Exact: equal to `forward_whole` on the same graph. Rows of ``tables`` that had to be made again
    are; the others are left for the pass that needs them.

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
        everyone = incoming(graph, np.arange(graph.size))
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
    near = incoming(graph, wanted) if plan.first_width else _alone(wanted)
    needed = np.flatnonzero(mark_rows(graph.size, np.concatenate([wanted, near.sources])))
    change = _change(plan, graph, features, tables, needed, new)
    if new or plan.reaches_everyone or change.cost.way == "full":
        everyone = incoming(graph, np.arange(graph.size))
        refreshed = _whole(plan, graph, features, everyone, tables, pool, needed)
        way: Way = "full"
    else:
        refreshed, way = _refresh(plan, graph, features, tables, pool, change), "incremental"
    tables.computed[needed] = tables.version = graph.version
    if plan.reaches_everyone:
        logits = plan.outputs(everyone, tables.scale, tables.second, pool)[wanted]
    else:
        logits = plan.outputs(near, tables.scale, tables.second, pool)
    return Outputs(logits, way, _reason(plan, new, way), refreshed, len(needed), change.cost)


@dataclass(frozen=True, slots=True)
class _Change:
    """Rows of the second table to be gathered again, at what cost; for GCN what else changed."""

    stale: Ints
    cost: Cost
    rescaled: RescaledMessages | None = None


def _change(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    tables: Tables,
    needed: Ints,
    new: bool,
) -> _Change:
    """Bring the first table up to date, unless a whole pass will do that; say what follows."""
    if new:
        return _Change(needed, _cost(plan, graph, needed, needed))
    n, before = graph.size, tables.rows
    tables.computed[before:n] = NEVER_COMPUTED
    touched = np.flatnonzero(graph.changed[:n] > tables.version)
    touched = np.union1d(touched, np.arange(before, n)) if plan.degrees_matter else touched
    if not isinstance(plan, MessagePlan):
        _transform(plan, features, tables, n)
        if plan.degrees_matter:
            tables.scale[touched] = degree_scale(incoming_counts(graph, touched))
        stale = needed[_outdated(plan, graph, tables, needed)]
        return _Change(stale, _cost(plan, graph, needed, stale))
    told = max_incoming(graph, touched) * len(needed) // max(n, 1)  # about, before it is looked at
    cost = _cost(plan, graph, needed, touched, told)
    if cost.way == "full":
        return _Change(needed, cost)
    tables.rows = n
    found = rescale_messages(plan, graph, features, tables, touched, needed)
    gathered = np.concatenate([found.own.rows, found.again])
    return _Change(found.again, _cost(plan, graph, needed, gathered, len(found.receiver)), found)


def _refresh(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    tables: Tables,
    pool: Pool,
    change: _Change,
) -> int:
    """Make the rows that changed; return how many."""
    rows = len(change.stale)
    if change.rescaled is not None and isinstance(plan, MessagePlan):
        change.rescaled.exchange(plan, tables, pool)
        tables.give_slots(change.stale)
        plan.second(change.rescaled.own, features, tables, pool)
        rows += len(change.rescaled.exchanged) + len(change.rescaled.own.rows)
    around = incoming(graph, change.stale) if plan.first_width else _alone(change.stale)
    plan.second(around, features, tables, pool)
    return rows


def _whole(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    everyone: Incoming,
    tables: Tables,
    pool: Pool,
    needed: Ints,
) -> int:
    """Make every row; APPNP keeps the rows whose features it has seen."""
    if plan.reaches_everyone and tables.version != NEVER_COMPUTED:
        stale = np.flatnonzero(tables.computed[: graph.size] == NEVER_COMPUTED)
        plan.second(_alone(stale), features, tables, pool)
        tables.computed[stale] = graph.version
        return len(stale)
    if isinstance(plan, MessagePlan):
        tables.forget_sums()
        tables.give_slots(needed)
    _refill(plan, graph, features, everyone, tables, pool)
    return graph.size


def _refill(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    everyone: Incoming,
    tables: Tables,
    pool: Pool,
) -> None:
    n = graph.size
    tables.rows = 0
    tables.scale[:n] = degree_scale(everyone.counts())
    _transform(plan, features, tables, n)
    plan.second(everyone, features, tables, pool)
    tables.computed[:n] = tables.version = graph.version


def _transform(plan: InferencePlan, features: Any, tables: Tables, n: int) -> None:
    """Fill the first table's rows that are still empty."""
    for at in range(tables.rows, n if plan.first_width else 0, TRANSFORM_ROWS):
        stop = min(at + TRANSFORM_ROWS, n)
        if isinstance(plan, MessagePlan):
            fill_messages(plan, features[at:stop], tables, np.arange(at, stop))
        else:
            tables.first[at:stop] = plan.first(features[at:stop])
    tables.rows = n


def _outdated(
    plan: InferencePlan, graph: InferenceGraph, tables: Tables, rows: Ints
) -> NDArray[np.bool_]:
    """Which rows of the second table were made before something that goes into them changed."""
    made = tables.computed[rows]
    if not plan.first_width:
        return np.asarray(made == NEVER_COMPUTED)  # features alone: once made, right for good
    return np.asarray(made < graph.changed[rows])


def _cost(
    plan: InferencePlan, graph: InferenceGraph, needed: Ints, gathered: Ints, exchanged: int = 0
) -> Cost:
    if not plan.first_width:
        return Cost(len(gathered), max(graph.size, 1) * 3)
    per = plan.first_width
    mean = graph.entries // max(graph.size, 1)
    reach = max_incoming(graph, gathered) + len(gathered) + 2 * exchanged
    return Cost(reach * per + len(needed) * mean, (graph.entries + graph.size) * per)


def _alone(rows: Ints) -> Incoming:
    return Incoming(rows, np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32))


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
