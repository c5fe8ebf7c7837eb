"""A growing graph replayed step by step, exactly, without a forward pass per step.

One node or one edge per step changes few rows: on CiteSeer about eight calibration nodes of 120.
``replay`` keeps the first layer's sums up to date and computes logits only for the nodes that are
needed: the watched ones (the calibration nodes) whenever they change, and others at the steps at
which they are requested. The logits are those of a full forward pass on G_t in float64, up to the
order of additions (about 1e-12).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ringfence.models.sequences.sequence import GraphSequence

__all__ = ["LogitRows", "Requests", "no_requests", "replay"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ROWS_HELD = 60_000


@dataclass(frozen=True, slots=True)
class Requests:
    """Nodes to evaluate, node[i] at step[i], in any order. int64 [k] each."""

    node: Ints
    step: Ints


@dataclass(frozen=True, slots=True)
class LogitRows:
    """Logits [k, classes] in order of time: of ``node`` [k] on G_step, ``degree`` there.

    ``asked`` says which rows answer a request; the others are watched nodes that changed. A watched
    node keeps its logits from one row to the next. ``last`` is the last step that is complete.
    """

    step: Ints
    node: Ints
    degree: Ints
    asked: NDArray[np.bool_]
    logits: Floats
    last: int


def no_requests() -> Requests:
    """No requests: only the watched nodes."""
    return Requests(np.empty(0, np.int64), np.empty(0, np.int64))


def replay(
    state: Mapping[str, Tensor],
    x: Any,
    sequence: GraphSequence,
    *,
    watched: Ints,
    requests: Requests | None = None,
    rows: int = ROWS_HELD,
) -> Iterator[LogitRows]:
    """Logits over time of a trained GCN, at step 0 and at every step that is requested.

    Args:
        state: the weights of ``networks.GCN``.
        x: features [n, in_features], dense or scipy.sparse.
        sequence: the growing graph.
        watched: nodes whose logits are followed from their arrival on.
        requests: nodes to evaluate, each at its step, 0 .. steps; None visits every step for the
            watched nodes alone.
        rows: about how many rows to hold at a time.

    Yields:
        ``LogitRows``, in order of time; each block ends with a whole step.
    """
    asked = no_requests() if requests is None else requests
    steps = _visited(sequence, requests)
    machine = _Machine(state, x, sequence, steps, watched, asked, rows)
    yield from machine.run()


def _visited(sequence: GraphSequence, requests: Requests | None) -> Ints:
    if requests is None:
        return np.arange(sequence.steps + 1, dtype=np.int64)
    if len(requests.step) and not (
        requests.step.min() >= 0 and requests.step.max() <= sequence.steps
    ):
        raise ValueError(
            f"requests at steps {requests.step.min()} to {requests.step.max()}, but the sequence "
            f"has steps 0 to {sequence.steps}; leave out nodes that never arrive"
        )
    return np.unique(np.append(requests.step, 0))


class _Machine:
    """All arrays of one replay; ``run`` drives the compiled loop block by block."""

    def __init__(
        self,
        state: Mapping[str, Tensor],
        x: Any,
        sequence: GraphSequence,
        steps: Ints,
        watched: Ints,
        asked: Requests,
        rows: int,
    ) -> None:
        nodes = len(sequence.node_step)
        self.steps = steps
        order = np.argsort(sequence.edge_step, kind="stable")
        edges = np.ascontiguousarray(sequence.edges[:, order], dtype=np.int64)
        edge_ends = _ends(sequence.edge_step[order], steps)
        by_step = np.argsort(asked.step, kind="stable")
        request_ends = _ends(asked.step[by_step], steps)
        weights = _Weights.of(state)
        z = np.ascontiguousarray(x @ weights.w1, dtype=np.float64)
        self.timetable: tuple[Any, ...] = (
            steps, edges, edge_ends, sequence.node_step, np.asarray(watched, np.int64),
            asked.node[by_step].astype(np.int64), request_ends,
        )  # fmt: skip
        starts, targets = _rows_in_order(edges, nodes)
        self.state: tuple[Any, ...] = (
            starts, targets, _zeros(nodes), _zeros(nodes) - 1, _zeros(nodes), _zeros(nodes),
            np.ones(nodes), z, np.zeros_like(z), _zeros(nodes), weights.b1, weights.w2, weights.b2,
            np.zeros((nodes, len(weights.b2))), _zeros(nodes) - 1, _zeros(nodes) - 1,
        )  # fmt: skip
        most = int(np.diff(request_ends).max(initial=0)) + len(watched)
        self.rows, self.classes = max(rows, most), len(weights.b2)

    def run(self) -> Iterator[LogitRows]:
        from ringfence.models.sequences.kernels.replay import replay_ticks

        tick = 0
        while tick < len(self.steps):
            kept = [np.empty(self.rows, np.int64) for _ in range(3)]
            asked = np.empty(self.rows, np.bool_)
            logits = np.empty((self.rows, self.classes))
            arrays: tuple[Any, ...] = (*self.timetable, *self.state, *kept, asked, logits)
            tick, count = replay_ticks(tick, *arrays)
            at, node, degree = (array[:count] for array in kept)
            last = int(self.steps[tick - 1])
            yield LogitRows(self.steps[at], node, degree, asked[:count], logits[:count], last)


@dataclass(frozen=True, slots=True)
class _Weights:
    w1: Floats
    b1: Floats
    w2: Floats
    b2: Floats

    @classmethod
    def of(cls, state: Mapping[str, Tensor]) -> _Weights:
        names = ("conv1.lin.weight", "conv1.bias", "conv2.lin.weight", "conv2.bias")
        if set(state) != set(names):
            raise ValueError(
                f"the weights are {', '.join(sorted(state))}; replay knows the two-layer GCN "
                f"({', '.join(names)}): evaluate other networks with scores_over_time"
            )
        w1, b1, w2, b2 = (state[name].detach().double().cpu().numpy() for name in names)
        return cls(np.ascontiguousarray(w1.T), b1, np.ascontiguousarray(w2.T), b2)


def _ends(sorted_steps: Ints, steps: Ints) -> Ints:
    """Where each visited step's share of things sorted by step ends; the first begins at 0."""
    return np.concatenate(([0], np.searchsorted(sorted_steps, steps, side="right")))


def _rows_in_order(edges: Ints, nodes: int) -> tuple[Ints, Ints]:
    """CSR rows of neighbours, each in order of arrival: starts [n + 1], targets [2 E]."""
    source = edges.T.ravel()
    target = edges[::-1].T.ravel()
    starts = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=nodes))))
    return starts.astype(np.int64), np.ascontiguousarray(target[np.argsort(source, kind="stable")])


def _zeros(nodes: int) -> Ints:
    return np.zeros(nodes, dtype=np.int64)
