"""One forward pass over a graph that grew: outputs where they are wanted, work where it changed.

What NodeEx and EdgeEx need are the outputs at the new nodes and at the calibration nodes. Those
hear the first layer's results at their neighbours, which are kept from pass to pass and made again
where the neighbour's own surroundings changed since. Every row is computed by the same kernel from
the same neighbours in the same order, whether alone or with all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.incremental.cost import Cost, Way
from ringfence.models.incremental.incidence import (
    Heard,
    Incidence,
    heard,
    heard_counts,
    newest_change,
)
from ringfence.models.incremental.plan import Plan
from ringfence.models.incremental.pool import Pool
from ringfence.models.incremental.tables import NEVER, Tables, empty_tables

__all__ = ["Outputs", "forward", "forward_whole"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

TRANSFORM_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Outputs:
    """Logits at the wanted rows [m, classes], and how they came about.

    refreshed: rows of the first layer that were computed. needed: rows that had to be right.
    """

    logits: Floats
    way: Way
    reason: str
    refreshed: int
    needed: int
    cost: Cost


def forward(
    plan: Plan, graph: Incidence, features: Any, wanted: Ints, tables: Tables, workers: int = 1
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
    pool = Pool(workers)
    try:
        return _forward(plan, graph, features, np.ascontiguousarray(wanted, np.int64), tables, pool)
    finally:
        pool.close()


def forward_whole(
    plan: Plan, graph: Incidence, features: Any, tables: Tables | None = None, workers: int = 1
) -> Floats:
    """Return the network's outputs at all nodes [n, classes]; ``tables`` are filled on the way."""
    kept = empty_tables(plan, graph.size) if tables is None else tables
    _check(graph, features, kept)
    pool = Pool(workers)
    try:
        everyone = heard(graph, np.arange(graph.size))
        _refill(plan, graph, features, everyone, kept, pool)
        if plan.reaches_everyone:
            return plan.walked(everyone, kept.scale, kept.second[: graph.size], pool)
        return plan.outputs(everyone, kept.scale, kept.second, pool)
    finally:
        pool.close()


def _forward(
    plan: Plan, graph: Incidence, features: Any, wanted: Ints, tables: Tables, pool: Pool
) -> Outputs:
    new = tables.version == NEVER
    if not new:
        _catch_up(plan, graph, features, tables)
    near = heard(graph, wanted) if plan.first_width else _alone(wanted)
    needed = _needed(graph, wanted, near)
    stale = needed if new else needed[_outdated(plan, graph, tables, needed)]
    cost = _cost(plan, graph, needed, stale)
    if new or plan.reaches_everyone or cost.way == "full":
        everyone = heard(graph, np.arange(graph.size))
        refreshed = _whole(plan, graph, features, everyone, tables, pool, new)
        way: Way = "full"
    else:
        around = heard(graph, stale) if plan.first_width else _alone(stale)
        plan.second(around, features, tables.first, tables.scale, tables.second, pool)
        tables.computed[stale] = graph.version
        refreshed, way = len(stale), "incremental"
    if plan.reaches_everyone:
        logits = plan.walked(everyone, tables.scale, tables.second[: graph.size], pool)[wanted]
    else:
        logits = plan.outputs(near, tables.scale, tables.second, pool)
    return Outputs(logits, way, _reason(plan, new, way), refreshed, len(needed), cost)


def _whole(
    plan: Plan, graph: Incidence, features: Any, everyone: Heard, tables: Tables, pool: Pool,
    new: bool,
) -> int:  # fmt: skip
    """Make every row; APPNP keeps the rows whose features it has seen."""
    if plan.reaches_everyone and not new:
        stale = np.flatnonzero(tables.computed[: graph.size] == NEVER)
        plan.second(_alone(stale), features, tables.first, tables.scale, tables.second, pool)
        tables.computed[stale] = graph.version
        return len(stale)
    _refill(plan, graph, features, everyone, tables, pool)
    return graph.size


def _refill(
    plan: Plan, graph: Incidence, features: Any, everyone: Heard, tables: Tables, pool: Pool
) -> None:
    n = graph.size
    tables.rows = 0
    _transform(plan, features, tables, n)
    tables.scale[:n] = _scale(everyone.counts())
    tables.version = graph.version
    plan.second(everyone, features, tables.first, tables.scale, tables.second, pool)
    tables.computed[:n] = graph.version


def _catch_up(plan: Plan, graph: Incidence, features: Any, tables: Tables) -> None:
    """Transform the features of new nodes; count again whom the changed nodes hear."""
    n, before = graph.size, tables.rows
    tables.computed[before:n] = NEVER
    _transform(plan, features, tables, n)
    if plan.degrees_matter:
        touched = np.flatnonzero(graph.changed[:n] > tables.version)
        touched = np.union1d(touched, np.arange(before, n))
        tables.scale[touched] = _scale(heard_counts(graph, touched))
    tables.version = graph.version


def _transform(plan: Plan, features: Any, tables: Tables, n: int) -> None:
    for at in range(tables.rows, n, TRANSFORM_ROWS):
        stop = min(at + TRANSFORM_ROWS, n)
        if plan.first_width:
            tables.first[at:stop] = plan.first(features[at:stop])
    tables.rows = n


def _scale(counts: Ints) -> Floats:
    return (1.0 / np.sqrt((counts + 1).astype(np.float32))).astype(np.float32)


def _needed(graph: Incidence, wanted: Ints, near: Heard) -> Ints:
    marked = np.zeros(graph.size, np.bool_)
    marked[wanted] = True
    marked[near.sources] = True
    return np.flatnonzero(marked)


def _outdated(plan: Plan, graph: Incidence, tables: Tables, rows: Ints) -> NDArray[np.bool_]:
    """Which rows of the second table were made before something that goes into them changed."""
    made = tables.computed[rows]
    if not plan.first_width:
        return np.asarray(made == NEVER)  # features alone: once made, right for good
    if plan.degrees_matter:
        return np.asarray(made < newest_change(graph, rows))
    return np.asarray(made < graph.changed[rows])


def _cost(plan: Plan, graph: Incidence, needed: Ints, stale: Ints) -> Cost:
    if not plan.first_width:
        return Cost(len(stale), max(graph.size, 1) * 3)
    per = plan.first_width
    mean = graph.entries // max(graph.size, 1)
    reach = int(heard_counts(graph, stale).sum()) + len(stale)
    return Cost(reach * per + len(needed) * mean, (graph.entries + graph.size) * per)


def _alone(rows: Ints) -> Heard:
    return Heard(rows, np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32))


def _reason(plan: Plan, new: bool, way: Way) -> str:
    if new:
        return "nothing was kept from an earlier pass"
    if plan.reaches_everyone:
        return f"a change reaches {plan.steps} hops: every step walks the whole graph"
    if way == "full":
        return "so much changed that computing everything is cheaper"
    return "only what changed was computed again"


def _check(graph: Incidence, features: Any, tables: Tables) -> None:
    if len(features) < graph.size or tables.room < graph.size:
        raise ValueError(
            f"the graph has {graph.size} nodes, but there are features of {len(features)} and "
            f"tables for {tables.room}; both need a row per node"
        )
