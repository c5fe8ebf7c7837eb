"""One sequence of the paper's protocol, from the order of arrival to a small record.

Decided here, where the paper leaves it open:
- node sequence: calibration nodes are drawn at random from all but train and validation nodes; then
  one node per step, with its edges to what is there;
- edge sequence: as many calibration edges as train nodes, from the edges that are not inside the
  train and validation nodes; both ends calibrate unless they are train or validation nodes; then
  one edge per step, and both ends that are new are evaluated at that step; isolated nodes never
  arrive;
- u: one per node and sequence, by keyed hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.splits import Model
from ringfence.models.conformal.row_thresholds import row_thresholds
from ringfence.models.conformal.sets import threshold
from ringfence.models.guarantee.law import effective_sample_size
from ringfence.models.hashing import SCORE, uniforms
from ringfence.models.sequences.replay import Requests, replay
from ringfence.models.sequences.sequence import GraphSequence, edge_sequence, node_sequence
from ringfence.models.sequences.timeline import (
    Evaluated,
    NodeScore,
    SequenceRule,
    evaluate_requests,
)

__all__ = [
    "RuleCounts",
    "Run",
    "SequenceRecord",
    "Time",
    "edge_record",
    "edge_run",
    "node_record",
    "node_run",
    "sequence_seed",
    "stale_coverage",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Time = Literal["arrival", "own", "last"]
"""When a node is evaluated: at its step, at a random later one, at the last."""
NODE_RULES: tuple[SequenceRule, ...] = ("node", "naive", "auto")
EDGE_RULES: tuple[SequenceRule, ...] = ("edge", "edge_exact", "node", "naive", "auto")


class RuleCounts(TypedDict):
    """What a rule's sets are on the nodes of a sequence: ``hit`` are right sets of one class."""

    covered: int
    size: float
    hit: float
    empty: int


class SequenceRecord(TypedDict):
    """One sequence of ``m`` nodes and ``n`` calibration nodes: counts by time and rule."""

    m: int
    n: int
    arrival: dict[str, RuleCounts]
    own: NotRequired[dict[str, RuleCounts]]
    last: dict[str, RuleCounts]
    effective_n: NotRequired[float]
    stale: NotRequired[dict[str, int]]


@dataclass(frozen=True, slots=True)
class Run:
    """A sequence of a dataset with the score that belongs to it."""

    sequence: GraphSequence
    score: NodeScore
    seed: int

    @property
    def arriving(self) -> Ints:
        """The nodes that are evaluated: those that arrive after step 0."""
        there = self.sequence.node_step <= self.sequence.steps
        return np.flatnonzero(self.sequence.evaluated & there)


def sequence_seed(seed: int, number: int, kind: str) -> int:
    """The seed of one sequence; node and edge sequences never share one."""
    return 1_000_000 * seed + 2 * number + (kind == "edge")


def node_run(
    data: Dataset, model: Model, seed: int, *, calibration: int | None = None, steps: int = 0
) -> Run:
    """A node sequence: one node per step, or ``steps`` equal groups."""
    n = model.calibration if calibration is None else calibration
    arriving = data.nodes - len(model.context) - n
    sequence = node_sequence(
        data.edges, data.nodes, model.context, calibration=n, steps=steps or arriving, seed=seed
    )
    return Run(sequence, _score(data, seed), seed)


def edge_run(data: Dataset, model: Model, seed: int, *, steps: int = 0) -> Run:
    """An edge sequence: one edge per step, or ``steps`` equal groups."""
    inside = np.isin(data.edges, model.context).all(axis=0)
    arriving = int((~inside).sum()) - model.calibration
    sequence = edge_sequence(
        data.edges,
        data.nodes,
        model.context,
        calibration_edges=model.calibration,
        steps=steps or arriving,
        seed=seed,
    )
    return Run(sequence, _score(data, seed), seed)


def node_record(data: Dataset, model: Model, seed: int, alpha: float) -> SequenceRecord:
    """NodeEx, naive and bands on one node sequence: on arrival, at a random time, at the end."""
    run = node_run(data, model, seed)
    nodes, steps = run.arriving, run.sequence.steps
    rng = np.random.default_rng([seed, 1])
    times = {
        "arrival": run.sequence.node_step[nodes],
        "own": rng.integers(run.sequence.node_step[nodes], steps + 1),
        "last": np.full(len(nodes), steps),
    }
    by_time = _evaluate(data, model, run, times, alpha, NODE_RULES)
    return {
        "m": len(nodes),
        "n": len(run.sequence.calibration),
        "arrival": by_time["arrival"],
        "own": by_time["own"],
        "last": by_time["last"],
    }


def edge_record(data: Dataset, model: Model, seed: int, alpha: float) -> SequenceRecord:
    """EdgeEx, NodeEx, naive and bands of degree on one edge sequence, on arrival and at the end.

    "stale" is the published notebook's variant: every score but naive's own is that of the full
    graph, whatever the step.
    """
    run = edge_run(data, model, seed)
    nodes = run.arriving
    times = {
        "arrival": run.sequence.node_step[nodes],
        "last": np.full(len(nodes), run.sequence.steps),
    }
    by_time = _evaluate(data, model, run, times, alpha, EDGE_RULES)
    known = run.sequence.calibration
    worth = effective_sample_size(1.0 / run.sequence.degrees(run.sequence.steps)[known])
    return {
        "m": len(nodes),
        "n": len(known),
        "effective_n": worth,
        "arrival": by_time["arrival"],
        "last": by_time["last"],
        "stale": stale_coverage(data, model, run, alpha),
    }


def _score(data: Dataset, seed: int) -> NodeScore:
    return NodeScore(uniforms(data.key_strings, f"reproduce:{data.name}:{seed}", SCORE))


def _evaluate(
    data: Dataset,
    model: Model,
    run: Run,
    times: dict[str, Ints],
    alpha: float,
    rules: tuple[SequenceRule, ...],
) -> dict[str, dict[str, RuleCounts]]:
    nodes = run.arriving
    requests = Requests(np.tile(nodes, len(times)), np.concatenate(list(times.values())))
    which = np.repeat(np.arange(len(times)), len(nodes))[np.argsort(requests.step, kind="stable")]
    rows = replay(
        model.state, data.x, run.sequence, watched=run.sequence.calibration, requests=requests
    )
    judged = evaluate_requests(
        rows, run.sequence.calibration, data.y, run.score, alpha, rules, run.sequence
    )
    return {time: _summary(judged, which == i, rules) for i, time in enumerate(times)}


def _summary(
    judged: Evaluated, at_time: NDArray[np.bool_], rules: tuple[SequenceRule, ...]
) -> dict[str, RuleCounts]:
    return {
        rule: {
            "covered": int(judged.covered[rule][at_time].sum()),
            "size": float(judged.size[rule][at_time].mean()),
            "hit": float(judged.hit[rule][at_time].mean()),
            "empty": int((judged.size[rule][at_time] == 0).sum()),
        }
        for rule in rules
    }


def stale_coverage(data: Dataset, model: Model, run: Run, alpha: float) -> dict[str, int]:
    """Return how many nodes are covered on arrival, by rule, with scores of the full graph.

    These are the edge columns as published: the authors' notebook for edge sequences computes
    ``step_logits`` and then scores ``step_logtis``, a variable that the node loop before it left
    behind, the logits on the full graph. Degrees are those of the right graph, and so is naive's
    threshold.
    """
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


def _degrees_over_time(edges: Ints, edge_step: Ints, nodes: Ints, steps: Ints) -> Floats:
    """Degrees of these nodes at each of these steps, float64 [steps, nodes]."""
    place = np.full(int(edges.max()) + 1, -1)
    place[nodes] = np.arange(len(nodes))
    degrees = np.zeros((len(steps) + 1, len(nodes)))
    tick = np.searchsorted(steps, edge_step)  # the first of the steps at which the edge is there
    for ends in edges:
        inside = place[ends] >= 0
        np.add.at(degrees, (tick[inside], place[ends[inside]]), 1.0)
    return np.cumsum(degrees[:-1], axis=0)
