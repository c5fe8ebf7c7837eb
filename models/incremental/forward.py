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
    at_most_heard,
    heard,
    heard_counts,
)
from ringfence.models.incremental.messages import (
    Rescaled,
    fill_messages,
    marked,
    rescaled,
    scale_of,
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
    near = heard(graph, wanted) if plan.first_width else _alone(wanted)
    needed = np.flatnonzero(marked(graph.size, np.concatenate([wanted, near.sources])))
    change = _change(plan, graph, features, tables, needed, new)
    if new or plan.reaches_everyone or change.cost.way == "full":
        everyone = heard(graph, np.arange(graph.size))
        refreshed = _whole(plan, graph, features, everyone, tables, pool, needed)
        way: Way = "full"
    else:
        refreshed, way = _refresh(plan, graph, features, tables, pool, change), "incremental"
    tables.computed[needed] = tables.version = graph.version
    if plan.reaches_everyone:
        logits = plan.walked(everyone, tables.scale, tables.second[: graph.size], pool)[wanted]
    else:
        logits = plan.outputs(near, tables.scale, tables.second, pool)
    return Outputs(logits, way, _reason(plan, new, way), refreshed, len(needed), change.cost)


@dataclass(frozen=True, slots=True)
class _Change:
    """Rows of the second table to be gathered again, at what cost; for GCN what else changed."""

    stale: Ints
    cost: Cost
    rescaled: Rescaled | None = None


def _change(
    plan: Plan, graph: Incidence, features: Any, tables: Tables, needed: Ints, new: bool
) -> _Change:
    """Bring the first table up to date, unless a whole pass will do that; say what follows."""
    if new:
        return _Change(needed, _cost(plan, graph, needed, needed))
    n, before = graph.size, tables.rows
    tables.computed[before:n] = NEVER
    touched = np.flatnonzero(graph.changed[:n] > tables.version)
    touched = np.union1d(touched, np.arange(before, n)) if plan.degrees_matter else touched
    if not plan.has_messages:
        _transform(plan, features, tables, n)
        if plan.degrees_matter:
            tables.scale[touched] = scale_of(heard_counts(graph, touched))
        stale = needed[_outdated(plan, graph, tables, needed)]
        return _Change(stale, _cost(plan, graph, needed, stale))
    told = at_most_heard(graph, touched) * len(needed) // max(n, 1)  # about, before it is looked at
    cost = _cost(plan, graph, needed, touched, told)
    if cost.way == "full":
        return _Change(needed, cost)
    tables.rows = n
    found = rescaled(plan, graph, features, tables, touched, needed)
    gathered = np.concatenate([found.own.rows, found.again])
    return _Change(found.again, _cost(plan, graph, needed, gathered, len(found.listeners)), found)


def _refresh(
    plan: Plan, graph: Incidence, features: Any, tables: Tables, pool: Pool, change: _Change
) -> int:
    """Make the rows that changed; return how many."""
    rows = len(change.stale)
    if change.rescaled is not None:
        change.rescaled.exchange(plan, tables, pool)
        tables.give_slots(change.stale)
        plan.second(change.rescaled.own, features, tables, pool)
        rows += len(change.rescaled.exchanged) + len(change.rescaled.own.rows)
    around = heard(graph, change.stale) if plan.first_width else _alone(change.stale)
    plan.second(around, features, tables, pool)
    return rows


def _whole(
    plan: Plan, graph: Incidence, features: Any, everyone: Heard, tables: Tables, pool: Pool,
    needed: Ints,
) -> int:  # fmt: skip
    """Make every row; APPNP keeps the rows whose features it has seen."""
    if plan.reaches_everyone and tables.version != NEVER:
        stale = np.flatnonzero(tables.computed[: graph.size] == NEVER)
        plan.second(_alone(stale), features, tables, pool)
        tables.computed[stale] = graph.version
        return len(stale)
    if plan.has_messages:
        tables.forget_sums()
        tables.give_slots(needed)
    _refill(plan, graph, features, everyone, tables, pool)
    return graph.size


def _refill(
    plan: Plan, graph: Incidence, features: Any, everyone: Heard, tables: Tables, pool: Pool
) -> None:
    n = graph.size
    tables.rows = 0
    tables.scale[:n] = scale_of(everyone.counts())
    _transform(plan, features, tables, n)
    plan.second(everyone, features, tables, pool)
    tables.computed[:n] = tables.version = graph.version


def _transform(plan: Plan, features: Any, tables: Tables, n: int) -> None:
    """Fill the first table's rows that are still empty."""
    for at in range(tables.rows, n if plan.first_width else 0, TRANSFORM_ROWS):
        stop = min(at + TRANSFORM_ROWS, n)
        if plan.has_messages:
            fill_messages(plan, features[at:stop], tables, np.arange(at, stop))
        else:
            tables.first[at:stop] = plan.first(features[at:stop])
    tables.rows = n


def _outdated(plan: Plan, graph: Incidence, tables: Tables, rows: Ints) -> NDArray[np.bool_]:
    """Which rows of the second table were made before something that goes into them changed."""
    made = tables.computed[rows]
    if not plan.first_width:
        return np.asarray(made == NEVER)  # features alone: once made, right for good
    return np.asarray(made < graph.changed[rows])


def _cost(plan: Plan, graph: Incidence, needed: Ints, gathered: Ints, exchanged: int = 0) -> Cost:
    if not plan.first_width:
        return Cost(len(gathered), max(graph.size, 1) * 3)
    per = plan.first_width
    mean = graph.entries // max(graph.size, 1)
    reach = at_most_heard(graph, gathered) + len(gathered) + 2 * exchanged
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
