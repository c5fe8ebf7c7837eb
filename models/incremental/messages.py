"""GCN's messages between two passes: which of them changed, and who hears those.

A node's message is its transformed features times (number heard + 1)^-1/2, so a new relationship
changes what all neighbours of its ends hear. Their sums are kept and the change is exchanged in
them, exactly (see `_message_kernels`), instead of gathering all their messages again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.incremental import _message_kernels as kernels
from ringfence.models.incremental.incidence import (
    Heard,
    Incidence,
    heard,
    hearing,
    newest_change,
)
from ringfence.models.incremental.plan import Plan
from ringfence.models.incremental.pool import Pool
from ringfence.models.incremental.tables import Tables

__all__ = ["Rescaled", "fill_messages", "marked", "rescaled", "scale_of"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rescaled:
    """What a change of the graph asks of the second table.

    own: rows whose own relationships changed, with whom they hear. again: others that must be
    gathered again. exchanged: rows whose kept sums take the change, by pairs of a listener and a
    place in `rows`, where the message was `before`.
    """

    own: Heard
    again: Ints
    exchanged: Ints
    listeners: NDArray[np.int32]
    places: Ints
    rows: Ints
    before: NDArray[np.float32]

    def exchange(self, plan: Plan, tables: Tables, pool: Pool) -> None:
        """Bring the kept sums up to date, and the rows that are made from them."""
        sums = (tables.slots, tables.sums)
        kernels.exchange(self.listeners, self.places, *sums, self.rows, self.before, tables.first)
        even = np.arange(len(self.exchanged) + 1)
        pool(
            kernels.gcn_from_sums, even, self.exchanged, tables.scale, plan.bias, plan.onward,
            tables.second, *sums,
        )  # fmt: skip


def scale_of(counts: Ints) -> NDArray[np.float32]:
    """Return (count + 1)^-1/2."""
    return (1.0 / np.sqrt((counts + 1).astype(np.float32))).astype(np.float32)


def fill_messages(plan: Plan, features: Any, tables: Tables, rows: Ints) -> None:
    """Make the messages of ``rows``, whose scale is known, from their features [rows, d]."""
    plain = plan.first(features)
    kernels.weigh(rows, plain, tables.scale, plan.magic, tables.first)


def rescaled(
    plan: Plan, graph: Incidence, features: Any, tables: Tables, touched: Ints, needed: Ints
) -> Rescaled:
    """Bring the messages of ``touched`` up to date; return what follows for ``needed``."""
    since = tables.version
    around, before = heard(graph, touched), tables.first[touched]
    tables.scale[touched] = scale_of(around.counts())
    fill_messages(plan, features[touched], tables, touched)
    by = around if graph.both.all() else hearing(graph, touched)
    waiting = marked(graph.size, needed)
    own = waiting[touched]
    waiting[touched] = False
    told = waiting[by.sources]
    listeners = by.sources[told]
    places = np.repeat(np.arange(len(touched)), by.counts())[told]
    again = marked(graph.size, _outdated(graph, tables, np.flatnonzero(waiting), since))
    unkept = (tables.slots[listeners] == 0) | (tables.computed[listeners] < since)
    again[listeners[unkept | plan.is_loud(tables.first[touched])[places]]] = True
    kept = ~again[listeners]
    return Rescaled(
        around.take(own), np.flatnonzero(again),
        np.flatnonzero(marked(graph.size, listeners[kept])), listeners[kept], places[kept],
        touched, before,
    )  # fmt: skip


def marked(size: int, rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return bool [size], true at ``rows``."""
    marks = np.zeros(size, np.bool_)
    marks[rows] = True
    return marks


def _outdated(graph: Incidence, tables: Tables, rows: Ints, since: int) -> Ints:
    """Which rows missed a change before the last pass, because nobody needed them then."""
    asleep = rows[tables.computed[rows] < since]
    return asleep[tables.computed[asleep] < newest_change(graph, asleep)]
