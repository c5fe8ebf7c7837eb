"""The edge columns as published: scores of the full graph at every step.

The authors' notebook for edge sequences computes ``step_logits`` and then scores ``step_logtis``, a
variable that the node loop before it left behind: the logits on the full graph. Degrees are those
of the right graph, and so is naive's threshold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.splits import Model
from ringfence.models.conformal.row_thresholds import row_thresholds
from ringfence.models.conformal.sets import threshold
from ringfence.models.sequences.replay import Requests, replay

if TYPE_CHECKING:
    from ringfence.jobs.reproduce.protocol import Run

__all__ = ["stale_coverage"]


def stale_coverage(data: Dataset, model: Model, run: Run, alpha: float) -> dict[str, int]:
    """How many nodes are covered on arrival, by rule, if scores are those of the full graph."""
    sequence, nodes = run.sequence, run.arriving
    known = sequence.calibration
    there = np.concatenate([known, nodes])
    ends = Requests(there, np.full(len(there), sequence.steps))
    start, full = np.full(data.nodes, np.nan), np.full(data.nodes, np.nan)
    for rows in replay(model.state, data.x, sequence, watched=known, requests=ends):
        scores = run.score.true(rows.logits, rows.node, data.y)
        for table, step in ((start, 0), (full, sequence.steps)):
            table[rows.node[rows.step == step]] = scores[rows.step == step]
    steps, row = np.unique(sequence.node_step[nodes], return_inverse=True)
    degrees = _degrees_over_time(sequence.edges, sequence.edge_step, known, steps)
    same = np.broadcast_to(full[known], degrees.shape)
    limits = {
        "edge": row_thresholds(np.ascontiguousarray(same), alpha, 1.0 / degrees)[row],
        "node": float(threshold(full[known], alpha)),
        "naive": float(threshold(start[known], alpha)),
    }
    return {rule: int((full[nodes] >= limit).sum()) for rule, limit in limits.items()}


def _degrees_over_time(
    edges: np.ndarray, edge_step: np.ndarray, nodes: np.ndarray, steps: np.ndarray
) -> np.ndarray:
    """Degrees of these nodes at each of these steps, float64 [steps, nodes]."""
    place = np.full(int(edges.max()) + 1, -1)
    place[nodes] = np.arange(len(nodes))
    found = np.zeros((len(steps) + 1, len(nodes)))
    tick = np.searchsorted(steps, edge_step)  # the first of the steps at which the edge is there
    for ends in edges:
        own = place[ends] >= 0
        np.add.at(found, (tick[own], place[ends[own]]), 1.0)
    return np.cumsum(found[:-1], axis=0)
