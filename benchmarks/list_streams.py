"""What a promise about the listed nodes of all runs together could be kept by.

    python -m benchmarks.lists --streams [--quick] [--seed 0]

Lives of 60 runs of 100 nodes by one calibration of 1,000, at a promised share of .2. Beside `per
run` and `per stream` of the product stand decisions in batches (`per run` once every 5 or 20 runs,
so a node waits for its batch), an online test by the same p-values (LOND, Javanmard and Montanari
2015: level of the t-th node .2 * 6 / (pi t)^2 * (1 + listed so far)), and a threshold that feedback
moves: after each listed node whose class came, ten runs late, by .05 * (wrong - .2) of log odds. In
`moves` wrong nodes score one standard deviation higher from run 31 on, which no list expects.
`pooled`: wrong of all listed nodes, mean over lives; `far above`: lives with more than .25.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import keep, show
from ringfence.models.conformal.strata import one_stratum
from ringfence.models.selection.per_run import PER_RUN, list_p_values
from ringfence.models.selection.per_stream import PER_STREAM
from ringfence.models.selection.references import References, ScoredNodes, Tail, rank_among

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Decide = Callable[[Floats, Bools, Floats, Bools], Bools]
CALIBRATION, RUNS, RUN_NODES, SHARE, FAR = 1_000, 60, 100, 0.2, 0.25
LATE_RUNS, STEP = 10, 0.05
WORLDS = {"rare, clear": (0.06, 3.0, 0.0), "common": (0.3, 1.5, 0.0), "moves": (0.06, 3.0, 1.0)}


def tails_of(known: Floats, right: Bools, new: Floats) -> list[Tail]:
    """Where new nodes stand among the references; scores are continuous, so ties need no order."""
    references = References(ScoredNodes(known, known), ~right, np.ones(len(known)))
    return rank_among(references, ScoredNodes(new, new), one_stratum(len(known), len(new)))


def in_batches(runs: int) -> Decide:
    """`per run` over the nodes of several runs at once."""

    def decide(known: Floats, right: Bools, new: Floats, _truth: Bools) -> Bools:
        nodes = runs * RUN_NODES
        parts = [new[start : start + nodes] for start in range(0, len(new), nodes)]
        return np.concatenate(
            [PER_RUN.shares(tails_of(known, right, x), len(x), SHARE) <= SHARE for x in parts]
        )

    return decide


def by_stream(known: Floats, right: Bools, new: Floats, _truth: Bools) -> Bools:
    """`per stream` of the product."""
    return np.asarray(PER_STREAM.shares(tails_of(known, right, new), len(new), SHARE) <= SHARE)


def by_lond(known: Floats, right: Bools, new: Floats, _truth: Bools) -> Bools:
    """An online test of each node; its level grows with what was listed before."""
    p = list_p_values(tails_of(known, right, new), len(new))
    on, listed = np.zeros(len(new), np.bool_), 0
    for t, value in enumerate(p.tolist(), start=1):
        on[t - 1] = value <= SHARE * 6 / (np.pi * t) ** 2 * (1 + listed)
        listed += int(on[t - 1])
    return on


def by_feedback(known: Floats, right: Bools, new: Floats, truth: Bools) -> Bools:
    """A threshold that starts where a fifth of the references above is wrong, and learns."""
    order = np.argsort(-known)
    above = np.cumsum(~right[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(above <= SHARE)
    threshold = known[order[good[-1]]] if len(good) else known.max()
    on = np.zeros(len(new), np.bool_)
    for run in range(RUNS):
        rows = slice(run * RUN_NODES, (run + 1) * RUN_NODES)
        came = slice((run - LATE_RUNS) * RUN_NODES, (run - LATE_RUNS + 1) * RUN_NODES)
        if run >= LATE_RUNS:
            wrong = ~truth[came][on[came]]
            threshold += STEP * float((wrong - SHARE).sum())
        on[rows] = new[rows] >= threshold
    return on


WAYS: dict[str, tuple[int, Decide]] = {
    "per run": (0, in_batches(1)),
    "per run, 5 at once": (4, in_batches(5)),
    "per run, 20 at once": (19, in_batches(20)),
    "per stream": (0, by_stream),
    "online test": (0, by_lond),
    "feedback": (0, by_feedback),
}
"""A way to decide, and for how many runs a node waits for it at most."""


def play(world: str, lives: int, seed: int) -> list[dict[str, Any]]:
    """Return a row per way."""
    rare, distance, moves = WORLDS[world]
    rng, nodes = np.random.default_rng(seed), RUNS * RUN_NODES
    pooled: dict[str, list[float]] = {way: [] for way in WAYS}
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(lives):
        right, truth = rng.random(CALIBRATION) < rare, rng.random(nodes) < rare
        known = rng.normal(size=CALIBRATION) + distance * right
        new = rng.normal(size=nodes) + distance * truth
        new[nodes // 2 :] += moves * ~truth[nodes // 2 :]
        for way, (_waits, decide) in WAYS.items():
            on = decide(known, right, new, truth)
            pooled[way].append(float((on & ~truth).sum() / max(int(on.sum()), 1)))
            found[way].append(float((on & truth).sum() / truth.sum()))
    return [
        {
            "world": world, "way": way, "lives": lives, "waits_runs": waits,
            "pooled": float(np.mean(pooled[way])),
            "standard_error": float(np.std(pooled[way]) / np.sqrt(lives)),
            "far_above": float(np.mean(np.array(pooled[way]) > FAR)),
            "found": float(np.mean(found[way])),
        }
        for way, (waits, _decide) in WAYS.items()
    ]  # fmt: skip


def run(quick: bool, seed: int) -> None:
    """Play the lives of every world, show a row per way and keep them."""
    rows = [row for world in WORLDS for row in play(world, 10 if quick else 100, seed)]
    for row in rows:
        show(row)
    keep("list_streams", rows, quick, seed=seed)
