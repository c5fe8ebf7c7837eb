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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.splits import Model
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

__all__ = ["Run", "edge_record", "edge_run", "node_record", "node_run", "sequence_seed"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
NODE_RULES: tuple[SequenceRule, ...] = ("node", "naive", "auto")
EDGE_RULES: tuple[SequenceRule, ...] = ("edge", "edge_exact", "node", "naive", "auto")


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


def node_record(data: Dataset, model: Model, seed: int, alpha: float) -> dict[str, Any]:
    """NodeEx, naive and bands on one node sequence: on arrival, at a random time, at the end."""
    run = node_run(data, model, seed)
    nodes, steps = run.arriving, run.sequence.steps
    rng = np.random.default_rng([seed, 1])
    times = {
        "arrival": run.sequence.node_step[nodes],
        "own": rng.integers(run.sequence.node_step[nodes], steps + 1),
        "last": np.full(len(nodes), steps),
    }
    found = _evaluate(data, model, run, times, alpha, NODE_RULES)
    return {"m": len(nodes), "n": len(run.sequence.calibration), **found}


def edge_record(data: Dataset, model: Model, seed: int, alpha: float) -> dict[str, Any]:
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
    found = _evaluate(data, model, run, times, alpha, EDGE_RULES)
    known = run.sequence.calibration
    worth = effective_sample_size(1.0 / run.sequence.degrees(run.sequence.steps)[known])
    sizes = {"m": len(nodes), "n": len(known), "effective_n": worth}
    return {**sizes, **found, "stale": _stale(data, model, run, alpha)}


def _score(data: Dataset, seed: int) -> NodeScore:
    return NodeScore(uniforms(data.key_strings, f"reproduce:{data.name}:{seed}", SCORE))


def _evaluate(
    data: Dataset,
    model: Model,
    run: Run,
    times: dict[str, Ints],
    alpha: float,
    rules: tuple[SequenceRule, ...],
) -> dict[str, Any]:
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
    judged: Evaluated, own: NDArray[np.bool_], rules: tuple[SequenceRule, ...]
) -> dict[str, Any]:
    return {
        rule: {
            "covered": int(judged.covered[rule][own].sum()),
            "size": float(judged.size[rule][own].mean()),
            "hit": float(judged.hit[rule][own].mean()),
            "empty": int((judged.size[rule][own] == 0).sum()),
        }
        for rule in rules
    }


def _stale(data: Dataset, model: Model, run: Run, alpha: float) -> dict[str, int]:
    """Coverage on arrival if all scores are the full graph's and only degrees and naive are not."""
    from ringfence.jobs.reproduce.stale import stale_coverage

    return stale_coverage(data, model, run, alpha)
