"""Messages between two passes (GCN): which of them changed, and which rows receive those.

A node's message is its transformed features times (incoming neighbours + 1)^-1/2, so a new
relationship changes the messages that all neighbours of its ends receive. Their sums are kept and
the change is exchanged in them, exactly (see `kernels.gcn`), instead of gathering all again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import (
    Incoming,
    InferenceGraph,
    incoming,
    newest_change,
    receivers,
)
from ringfence.models.inference.kernels import gcn as kernels
from ringfence.models.inference.layers.base import MessagePlan
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import Tables

__all__ = ["RescaledMessages", "degree_scale", "fill_messages", "mark_rows", "rescale_messages"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RescaledMessages:
    """What a change of the graph asks of the second table.

    own: rows whose own relationships changed, with their incoming neighbours. again: others that
    must be gathered again. exchanged: rows whose kept sums take the change, by pairs of a receiver
    and a place in `rows`, where the message was `before`.
    """

    own: Incoming
    again: Ints
    exchanged: Ints
    receiver: NDArray[np.int32]
    places: Ints
    rows: Ints
    before: NDArray[np.float32]

    def exchange(self, plan: MessagePlan, tables: Tables, pool: Pool) -> None:
        """Bring the kept sums up to date, and the rows that are made from them."""
        sums = (tables.slots, tables.sums)
        kernels.exchange_messages(
            self.receiver, self.places, *sums, self.rows, self.before, tables.first
        )
        plan.second_from_sums(self.exchanged, tables, pool)


def degree_scale(counts: Ints) -> NDArray[np.float32]:
    """Return (count + 1)^-1/2, float32 [n].

    >>> degree_scale(np.array([0, 3])).tolist()
    [1.0, 0.5]
    """
    return (1.0 / np.sqrt((counts + 1).astype(np.float32))).astype(np.float32)


def fill_messages(plan: MessagePlan, features: Any, tables: Tables, rows: Ints) -> None:
    """Make the messages of ``rows``, whose scale is known, from their features [rows, d]."""
    plain = plan.first(features)
    kernels.weigh(rows, plain, tables.scale, plan.rounding_term, tables.first)


def rescale_messages(
    plan: MessagePlan,
    graph: InferenceGraph,
    features: Any,
    tables: Tables,
    touched: Ints,
    needed: Ints,
    changed: Ints,
) -> RescaledMessages:
    """Bring the messages of ``touched`` up to date; return what follows for ``needed``.

    changed int64 [n]: the version at which each node's message last changed.
    """
    since = tables.version
    around, before = incoming(graph, touched), tables.first[touched]
    tables.scale[touched] = degree_scale(around.counts())
    fill_messages(plan, features[touched], tables, touched)
    by = around if graph.undirected.all() else receivers(graph, touched)
    waiting = mark_rows(graph.size, needed)
    own = waiting[touched]
    waiting[touched] = False
    told = waiting[by.sources]
    receiver = by.sources[told]
    places = np.repeat(np.arange(len(touched)), by.counts())[told]
    again = mark_rows(graph.size, _outdated(graph, tables, np.flatnonzero(waiting), changed))
    unkept = (tables.slots[receiver] == 0) | (tables.computed[receiver] < since)
    again[receiver[unkept | plan.exceeds_exact_range(tables.first[touched])[places]]] = True
    kept = ~again[receiver]
    return RescaledMessages(
        around.take(own), np.flatnonzero(again),
        np.flatnonzero(mark_rows(graph.size, receiver[kept])), receiver[kept], places[kept],
        touched, before,
    )  # fmt: skip


def mark_rows(size: int, rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return bool [size], true at ``rows``.

    >>> mark_rows(3, np.array([1])).tolist()
    [False, True, False]
    """
    marks = np.zeros(size, np.bool_)
    marks[rows] = True
    return marks


def _outdated(graph: InferenceGraph, tables: Tables, rows: Ints, changed: Ints) -> Ints:
    """Which rows missed a change before the last pass, because nobody needed them then."""
    asleep = rows[tables.computed[rows] < tables.version]
    return asleep[tables.computed[asleep] < newest_change(graph, asleep, changed)]
