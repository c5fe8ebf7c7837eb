"""Which nodes of a small context label a node is connected to, as columns of their own.

A network of two layers can tell three shippers apart by the orders that each of them has, although
no column of a shipper is usable. Means of columns can't: the one-hop baseline was blind there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.several_labels.graph import list_channel
from ringfence.models.schema import CLASSIFIED
from ringfence.models.trees.columns import ColumnInputs

__all__ = ["MAX_NODES", "identity_table"]

MAX_NODES = 50  # of a context label whose nodes get a column each


def identity_table(inputs: ColumnInputs, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return, per channel from a small context label, a 0 or 1 for each of its nodes [n, columns].

    Nodes of the classified label have none: which of them are neighbours says nothing of others.
    """
    graph, parts = inputs.graph, [np.empty((len(rows), 0), np.float32)]
    for channel in graph.schema.channels:
        count = graph.counts[channel.source]
        if channel.target != CLASSIFIED or channel.source == CLASSIFIED or count > MAX_NODES:
            continue
        near = list_channel(graph, channel, rows)
        table = np.zeros((len(rows), count), np.float32)
        place = np.repeat(np.arange(len(rows)), near.counts())
        table[place, graph.places[near.sources]] = 1.0
        parts.append(table)
    return np.concatenate(parts, axis=1)
