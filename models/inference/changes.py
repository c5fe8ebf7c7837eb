"""What changed since the last pass: the rows that must be recomputed, and at what cost.

Every node has the version at which its relationships last changed, and where its features changed
that version too; every row of the second table has the version up to which it is valid. A row is
recomputed if one of its inputs is newer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.cost import Cost
from ringfence.models.inference.graph import (
    InferenceGraph,
    InNeighbours,
    incoming_counts,
    max_incoming,
    receivers,
)
from ringfence.models.inference.layers.base import InferencePlan, MessagePlan
from ringfence.models.inference.messages import (
    RescaledMessages,
    degree_scale,
    messages_of,
    rescale_messages,
)
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import NEVER_COMPUTED, Tables

__all__ = ["Change", "fill_first", "find_altered", "find_change", "without_neighbours"]

Ints = NDArray[np.int64]

TRANSFORM_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Change:
    """Rows of the second table to be gathered again, at what cost; for GCN what else changed."""

    stale: Ints
    cost: Cost
    rescaled: RescaledMessages | None = None


def find_change(
    plan: InferencePlan,
    graph: InferenceGraph,
    features: Any,
    tables: Tables,
    needed: Ints,
    new: bool,
    pool: Pool,
) -> Change:
    """Update the first table, unless a full pass will do that; return what must be recomputed."""
    if new:
        return Change(needed, _cost(plan, graph, needed, needed))
    before, n = tables.rows, graph.size
    tables.computed[before:n] = NEVER_COMPUTED
    if isinstance(plan, MessagePlan):
        return _find_messages(plan, graph, features, tables, needed, pool)
    altered = graph.altered.since(tables.version)
    if plan.first_width:
        for at in range(0, len(altered), TRANSFORM_ROWS):
            rows = altered[at : at + TRANSFORM_ROWS]
            tables.first[rows] = plan.first(features[rows])
    fill_first(plan, features, tables, n)
    if plan.degrees_matter:
        touched = _touched(graph, graph.changed, tables, before)
        tables.scale[touched] = degree_scale(incoming_counts(graph, touched))
    stale = _stale_rows(plan, graph, tables, needed)
    return Change(stale, _cost(plan, graph, needed, stale))


def _find_messages(
    plan: MessagePlan,
    graph: InferenceGraph,
    features: Any,
    tables: Tables,
    needed: Ints,
    pool: Pool,
) -> Change:
    """A node whose own relationships or features changed sends another message."""
    changed = stamp_altered(graph, graph.altered.rows, graph.altered.versions)
    touched = _touched(graph, changed, tables, tables.rows)
    reach = max_incoming(graph, touched)
    told = reach * len(needed) // max(graph.size, 1)  # about, for a start
    cost = _cost(plan, graph, needed, touched, told, reach)
    if cost.way == "full":
        return Change(needed, cost)
    known, tables.rows = tables.rows, graph.size
    rescaled = rescale_messages(
        plan, graph, features, tables, touched, needed, changed, known, pool
    )
    gathered = np.concatenate([rescaled.gathered.rows, rescaled.again])
    return Change(
        rescaled.again, _cost(plan, graph, needed, gathered, len(rescaled.senders)), rescaled
    )


def find_altered(graph: InferenceGraph, tables: Tables, rows: Ints) -> Ints:
    """Which rows, computed only from their own features, were never made or have other features.

    >>> from ringfence.models.inference.graph import graph_of
    >>> graph = graph_of(np.empty((2, 0), np.int64), nodes=2)
    >>> class Kept: computed = np.array([0, NEVER_COMPUTED])
    >>> find_altered(graph, Kept, np.array([0, 1]))
    array([1])
    """
    newest = np.full(graph.size, NEVER_COMPUTED, np.int64)
    np.maximum.at(newest, graph.altered.rows, graph.altered.versions)
    made = tables.computed[rows]
    stale: Ints = rows[(made == NEVER_COMPUTED) | (made < newest[rows])]
    return stale


def stamp_altered(graph: InferenceGraph, rows: NDArray[Any], versions: Ints) -> Ints:
    """Return the versions at which nodes changed [n], with changes of ``rows`` at ``versions``."""
    if not len(rows):
        return graph.changed
    changed = graph.changed[: graph.size].copy()
    np.maximum.at(changed, rows, versions)
    return changed


def _touched(graph: InferenceGraph, changed: Ints, tables: Tables, before: int) -> Ints:
    """Nodes that changed since the last pass, and those that came."""
    touched = changed[: graph.size] > tables.version
    touched[before:] = True
    return np.flatnonzero(touched)


def _stale_rows(plan: InferencePlan, graph: InferenceGraph, tables: Tables, needed: Ints) -> Ints:
    """Rows of the second table that are older than one of their inputs."""
    if not plan.first_width:
        return find_altered(graph, tables, needed)
    made = tables.computed[needed]
    oldest = made[made != NEVER_COMPUTED].min(initial=graph.version)
    young = graph.altered.versions > oldest
    altered, at = graph.altered.rows[young], graph.altered.versions[young]
    to = receivers(graph, altered)
    rows = np.concatenate([altered, to.sources])
    changed = stamp_altered(graph, rows, np.concatenate([at, np.repeat(at, to.counts())]))
    return needed[made < changed[needed]]


def fill_first(plan: InferencePlan, features: Any, tables: Tables, n: int) -> None:
    """Fill the first table's rows that are still empty."""
    for at in range(tables.rows, n if plan.first_width else 0, TRANSFORM_ROWS):
        stop = min(at + TRANSFORM_ROWS, n)
        if isinstance(plan, MessagePlan):
            scale = tables.scale[at:stop]
            tables.first[at:stop] = messages_of(plan, features[at:stop], scale)
        else:
            tables.first[at:stop] = plan.first(features[at:stop])
    tables.rows = n


def _cost(
    plan: InferencePlan,
    graph: InferenceGraph,
    needed: Ints,
    gathered: Ints,
    exchanged: int = 0,
    reach: int | None = None,
) -> Cost:
    """What a pass moves; reach: incoming neighbours of ``gathered``, where they were counted."""
    if not plan.first_width:
        return Cost(len(gathered), max(graph.size, 1) * 3)
    per = plan.first_width
    mean = graph.entries // max(graph.size, 1)
    near = max_incoming(graph, gathered) if reach is None else reach
    moved = near + len(gathered) + 2 * exchanged
    return Cost(moved * per + len(needed) * mean, (graph.entries + graph.size) * per)


def without_neighbours(rows: Ints) -> InNeighbours:
    """Return rows without neighbours, for layers that gather none."""
    return InNeighbours(rows, np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32))
