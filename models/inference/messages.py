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
    InferenceGraph,
    InNeighbours,
    in_neighbours,
    newest_change,
    receivers,
)
from ringfence.models.inference.kernels import exchange as kernels
from ringfence.models.inference.kernels.gcn import exchange_first, weigh
from ringfence.models.inference.kernels.node_hash import hash_nodes
from ringfence.models.inference.layers.base import MessagePlan
from ringfence.models.inference.pool import Pool
from ringfence.models.inference.state import Tables

__all__ = ["RescaledMessages", "degree_scale", "mark_rows", "messages_of", "rescale_messages"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RescaledMessages:
    """What a change of the graph means for the second table.

    gathered: rows whose own relationships changed and whose sums can't be updated, with their
    incoming neighbours. again: other rows that must be gathered again. exchanged: rows whose kept
    sums are updated in place: ``offsets[r] .. offsets[r + 1]`` of `senders`, places in `messages`
    (each the old message, then the new), and of `actions`.
    """

    gathered: InNeighbours
    again: Ints
    exchanged: Ints
    offsets: Ints
    senders: NDArray[np.int32]
    actions: NDArray[np.int8]
    messages: NDArray[np.float32]

    def exchange(self, plan: MessagePlan, tables: Tables, pool: Pool) -> None:
        """Bring the kept sums up to date, and the rows that are made from them."""
        pool(
            kernels.exchange_messages, self.offsets, self.exchanged, self.offsets, self.senders,
            self.actions, self.messages, tables.scale, plan.bias, plan.onward,
            tables.second, tables.slots, tables.sums,
        )  # fmt: skip


def degree_scale(counts: Ints) -> NDArray[np.float32]:
    """Return (count + 1)^-1/2, float32 [n].

    >>> degree_scale(np.array([0, 3])).tolist()
    [1.0, 0.5]
    """
    return (1.0 / np.sqrt((counts + 1).astype(np.float32))).astype(np.float32)


def messages_of(
    plan: MessagePlan, features: Any, scale: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the messages of nodes with these features [m, d] and scales [m]."""
    messages = plan.first(features)
    weigh(messages, scale, plan.rounding_term)
    return messages


def rescale_messages(
    plan: MessagePlan,
    graph: InferenceGraph,
    features: Any,
    tables: Tables,
    touched: Ints,
    needed: Ints,
    changed: Ints,
    known: int,
    pool: Pool,
) -> RescaledMessages:
    """Update the messages of ``touched``; return what that means for ``needed``.

    changed int64 [n]: the version at which each node's message last changed. known: how many nodes
    there were in the last pass.
    """
    around = in_neighbours(graph, touched)
    tables.scale[touched] = degree_scale(around.counts())
    messages, loud = _exchange_first(plan, features, tables, touched, known, pool)
    by = around if graph.undirected.all() else receivers(graph, touched)
    waiting = mark_rows(graph.size, needed)
    usable = waiting & (tables.slots[: graph.size] > 0)
    usable &= tables.computed[: graph.size] >= tables.version
    ways, partners = _compare_lists(tables, around, usable, known)
    usable[touched] = ways != kernels.GATHERED
    again = np.zeros(graph.size, np.bool_)
    again[_outdated(graph, tables, needed, changed)] = True
    counts = np.zeros(graph.size, np.int32)
    pairs = (touched, *_pairs(by, waiting))
    kernels.count_exchanges(*pairs, loud, waiting, usable, ways, counts, again)
    exchanged, offsets = _receivers(counts, again)
    senders, actions = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int8)
    kernels.list_exchanges(*pairs, waiting, again, ways, partners, counts, senders, actions)
    gathered = again[touched]
    again[touched] = False
    return RescaledMessages(
        around.take(gathered), np.flatnonzero(again), exchanged, offsets, senders, actions, messages
    )


def _exchange_first(
    plan: MessagePlan, features: Any, tables: Tables, rows: Ints, known: int, pool: Pool
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Put the messages of rows into the first table; return old and new ones, and the loud rows."""
    messages = np.empty((len(rows), 2 * plan.first_width), np.float32)
    loud = np.empty(len(rows), np.bool_)
    given, places = features, rows
    if not _is_plain(features):
        given = np.ascontiguousarray(features[rows], np.float32)
        places = np.arange(len(rows))
    pool(
        exchange_first, np.arange(len(rows) + 1), rows, places, given, plan.mean, plan.spread,
        plan.into, tables.scale, plan.rounding_term, plan.exact_range, known, tables.first,
        messages, loud,
    )  # fmt: skip
    return messages, loud


def _is_plain(features: Any) -> bool:
    """Whether the compiled loops can read rows where they stand, without a copy."""
    return (
        isinstance(features, np.ndarray)
        and features.dtype == np.float32
        and features.flags.c_contiguous
        and features.flags.writeable  # else each kernel would be compiled once more
    )


def _pairs(
    by: InNeighbours, needed: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Places of senders, and the needed rows that receive their messages [m]."""
    senders, hearing = (np.empty(len(by.sources) + 1, np.int32) for _ in range(2))
    filled = kernels.find_pairs(by.offsets, by.sources, needed, senders, hearing)
    return senders[:filled], hearing[:filled]


def _compare_lists(
    tables: Tables, around: InNeighbours, usable: NDArray[np.bool_], known: int
) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """How the list of each touched row differs from that of its kept sum, and by which node."""
    rows = around.rows
    hashes = np.empty(len(rows), np.uint64)
    hash_nodes(rows, hashes)
    order = np.argsort(hashes)
    ways, partners = np.empty(len(rows), np.int8), np.empty(len(rows), np.int32)
    kernels.compare_lists(
        *around.arrays(), usable, known, tables.slots, tables.hashes, order, hashes[order], ways,
        partners,
    )  # fmt: skip
    return ways, partners


def _receivers(counts: NDArray[np.int32], again: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Rows whose sums take changes, and where those of each begin; see `list_receivers`."""
    room = int(np.count_nonzero(counts))
    rows, offsets = np.empty(room, np.int64), np.empty(room + 1, np.int64)
    filled = kernels.list_receivers(counts, again, rows, offsets)
    return rows[:filled], offsets[: filled + 1]


def mark_rows(size: int, rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return bool [size], true at ``rows``.

    >>> mark_rows(3, np.array([1])).tolist()
    [False, True, False]
    """
    marks = np.zeros(size, np.bool_)
    marks[rows] = True
    return marks


def _outdated(graph: InferenceGraph, tables: Tables, rows: Ints, changed: Ints) -> Ints:
    """Which rows missed a change before the last pass, because they were not needed then."""
    asleep = rows[tables.computed[rows] < tables.version]
    return asleep[tables.computed[asleep] < newest_change(graph, asleep, changed)]
