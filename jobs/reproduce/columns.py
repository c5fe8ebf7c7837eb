"""Coverage, set size and singleton hits over time: what most figures are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.reproduce.datasets import Dataset
from ringfence.jobs.reproduce.protocol import Run, edge_run, node_run, sequence_seed
from ringfence.jobs.reproduce.published import ALPHA
from ringfence.jobs.reproduce.sequence_runs import Plan
from ringfence.jobs.reproduce.splits import Model
from ringfence.models.sequences.replay import Requests, replay
from ringfence.models.sequences.timeline import (
    Evaluated,
    NodeScore,
    SequenceRule,
    evaluate_requests,
)

__all__ = [
    "NAMES",
    "Curve",
    "arrival_curve",
    "chosen_steps",
    "compute_sets",
    "fixed_curve",
    "run_of",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NAMES: Mapping[SequenceRule, str] = {
    "node": "NodeEx",
    "naive": "naive",
    "edge": "EdgeEx",
    "edge_exact": "EdgeEx, exact",
    "auto": "bands of degree",
}


@dataclass(frozen=True, slots=True)
class Curve:
    """Coverage, mean set size and singleton-hit ratio by rule, at ``steps``; all in shares."""

    steps: Ints
    coverage: Mapping[SequenceRule, Floats]
    size: Mapping[SequenceRule, Floats]
    hit: Mapping[SequenceRule, Floats]


def run_of(
    plan: Plan, data: Dataset, model: Model, kind: str, number: int, calibration: int | None = None
) -> Run:
    """Sequence ``number`` of this kind: the one that the table has under the same number."""
    seed = sequence_seed(plan.seed, number, kind)
    if kind == "edge":
        return edge_run(data, model, seed)
    return node_run(data, model, seed, calibration=calibration)


def chosen_steps(run: Run, count: int = 40) -> Ints:
    """``count`` steps, evenly spread, the last one included."""
    return np.unique(np.linspace(run.sequence.steps / count, run.sequence.steps, count).astype(int))


def compute_sets(
    data: Dataset, model: Model, run: Run, requests: Requests, rules: tuple[SequenceRule, ...]
) -> Evaluated:
    """Return the sets of the requested nodes, each at its step."""
    known = run.sequence.calibration
    rows = replay(model.state, data.x, run.sequence, watched=known, requests=requests)
    return evaluate_requests(rows, known, data.y, run.score, ALPHA, rules, run.sequence)


def arrival_curve(data: Dataset, model: Model, run: Run, rules: tuple[SequenceRule, ...]) -> Curve:
    """Of all nodes that came until each step, evaluated on arrival: the share covered."""
    nodes = run.arriving
    evaluated = compute_sets(
        data, model, run, Requests(nodes, run.sequence.node_step[nodes]), rules
    )
    steps = chosen_steps(run, 80)
    until = np.searchsorted(evaluated.step, steps, side="right")
    seen = np.maximum(until, 1)

    def running(values: NDArray[np.generic]) -> Floats:
        return np.asarray(np.concatenate(([0.0], np.cumsum(values)))[until] / seen)

    return Curve(
        steps,
        {rule: running(evaluated.covered[rule]) for rule in rules},
        {rule: running(evaluated.size[rule]) for rule in rules},
        {rule: running(evaluated.hit[rule]) for rule in rules},
    )


def fixed_curve(
    data: Dataset,
    model: Model,
    run: Run,
    rules: tuple[SequenceRule, ...],
    *,
    count: int = 40,
    only: NDArray[np.bool_] | None = None,
    tps: bool = False,
) -> Curve:
    """All nodes that are there at each of ``count`` steps, evaluated at that step (columns of C).

    ``only`` bool [n] restricts the evaluated nodes, ``tps`` takes TPS in place of APS.
    """
    steps = chosen_steps(run, count)
    nodes = run.arriving if only is None else run.arriving[only[run.arriving]]
    there = run.sequence.node_step[nodes][None, :] <= steps[:, None]  # [steps, nodes]
    at, who = np.nonzero(there)
    judged = replace(run, score=NodeScore(None)) if tps else run
    evaluated = compute_sets(data, model, judged, Requests(nodes[who], steps[at]), rules)
    place = np.searchsorted(steps, evaluated.step)
    total = np.maximum(np.bincount(place, minlength=len(steps)), 1)

    def mean(values: NDArray[np.generic]) -> Floats:
        return np.asarray(np.bincount(place, values, minlength=len(steps)) / total)

    return Curve(
        steps,
        {rule: mean(evaluated.covered[rule]) for rule in rules},
        {rule: mean(evaluated.size[rule]) for rule in rules},
        {rule: mean(evaluated.hit[rule]) for rule in rules},
    )
