"""What a run does between a network's outputs and SQL, for `benchmarks.conformal --product`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ringfence.models.conformal.evaluate import (
    NodeDegrees,
    NodeScores,
    Promise,
    evaluate,
    rule_strata,
)
from ringfence.models.conformal.strata import stratified_p_values
from ringfence.models.inference import Neighbourhood
from ringfence.models.rules.registry import rule_named
from ringfence.models.scores import softmax64
from ringfence.models.scores.outputs import ScoredOutputs, in_steps, score_outputs

Step = tuple[str, Callable[[], object]]
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # scores, p-values, sets
CASES: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("APS", "NodeEx", {}),
    ("APS", "auto", {}),
    ("DAPS", "auto", {"diffusion": 0.5}),
)


@dataclass(frozen=True, slots=True)
class Outputs:
    """A network's outputs as a run has them: calibration nodes first, then those to judge."""

    logits: np.ndarray
    u: np.ndarray
    degrees: NodeDegrees
    known_classes: np.ndarray
    near: Neighbourhood
    alpha: float

    def judged(self, scored: ScoredOutputs, rule: str, one_by_one: bool = False) -> Arrays:
        n = len(self.known_classes)
        known, due = scored.scores[np.arange(n), self.known_classes], scored.scores[n:]
        promise = Promise((self.alpha,), rule_named(rule))
        if not one_by_one:
            found = evaluate(NodeScores(known, due, known), self.degrees, promise)
            return due, found.p_values, found.sets
        levels = promise.level_table(due.shape[1])
        p = stratified_p_values(known, due, rule_strata(promise, self.degrees))
        return due, p, p[None, :, :] > levels[:, None, :]


def make_outputs(
    nodes: int, classes: int, calibration: int, alpha: float, each: int = 6
) -> Outputs:
    """Classes are drawn from the outputs' own probabilities: the network is as good as it says."""
    rng = np.random.default_rng(3)
    every = nodes + calibration
    logits = rng.standard_normal((every, classes), dtype=np.float32) * 2.0
    degree = rng.geometric(0.15, every)
    chances = softmax64(logits[:calibration]).cumsum(axis=1)
    true = (chances < rng.random((calibration, 1))).sum(axis=1).clip(0, classes - 1)
    offsets = each * np.arange(every + 1)
    near = Neighbourhood(
        np.arange(every), np.arange(every), offsets, rng.integers(0, every, offsets[-1])
    )
    degrees = NodeDegrees(degree[:calibration], degree[calibration:], np.bincount(degree))
    return Outputs(logits, rng.random(every), degrees, true, near, alpha)


def steps_of_a_run(nodes: int, classes: int, calibration: int, alpha: float) -> list[Step]:
    """What a run does between the network's outputs and SQL, by name; and the same in steps over
    all rows: a table of probabilities, then scores, then one stratum after the other."""
    given = make_outputs(nodes, classes, calibration, alpha)

    def way(blocks: bool, name: str, rule: str, options: dict[str, float]) -> Arrays:
        near = given.near if options else None
        score = score_outputs if blocks else in_steps
        return given.judged(score(name, given.logits, given.u, options, near), rule, not blocks)

    found: list[Step] = []
    for name, rule, options in CASES:
        by_blocks, by_steps = (partial(way, one, name, rule, options) for one in (True, False))
        one, other = by_blocks(), by_steps()
        for what, here, there in zip(("scores", "p-values", "sets"), one, other, strict=True):
            if not np.array_equal(here, there):
                raise AssertionError(f"{name}, {rule}: {what} by blocks and in steps differ")
        del one, other, here, there
        case = f"{name}, {'one stratum' if rule == 'NodeEx' else 'bands of degree'}"
        found += [(f"outputs to sets, {case}, blocks", by_blocks)]
        found += [(f"outputs to sets, {case}, steps", by_steps)]
    scored = score_outputs("APS", given.logits, given.u, {})
    read = partial(score_outputs, "APS", given.logits, given.u, {})
    mixed = partial(score_outputs, "DAPS", given.logits, given.u, {"diffusion": 0.5}, given.near)
    return [
        *found,
        ("of it scores, top probability, entropy: APS", read),
        (f"of it the same: DAPS, {len(given.near.neighbours):,} neighbours", mixed),
        ("of it p-values and sets, one stratum", partial(given.judged, scored, "NodeEx")),
        ("of it p-values and sets, bands", partial(given.judged, scored, "auto")),
        ("reading the outputs once", lambda: float(given.logits.sum())),
    ]
