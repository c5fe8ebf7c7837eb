"""From a network's outputs to scores, top probabilities and entropies, in one read of the outputs.

A block of rows goes through softmax, scores and entropy while it lies in near caches: no table of
probabilities is made. The bits are those of the steps one after the other (`in_steps`), which small
inputs take, since loading the compiler costs more than they do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ringfence.models.arrays import Array, Floats, as_array, as_uniforms
from ringfence.models.conformal import calibration_ranks
from ringfence.models.row_shares import share_rows
from ringfence.models.scores.base import TINY, entropies, softmax64
from ringfence.models.scores.diffusion import diffuse_scores
from ringfence.models.scores.node_scores import Neighbours, node_scores, require_neighbours
from ringfence.models.scores.registry import score_named

__all__ = ["ScoredOutputs", "score_outputs"]

NUMBERS_PER_BLOCK = 65_536
MAX_SUMMED = 128  # numbers that numpy sums without halving the row
PARTS_BEGIN_AT = 8  # halves begin at multiples of this
Fill = Callable[..., None]


@dataclass(frozen=True, slots=True)
class ScoredOutputs:
    """scores float64 [m, classes] of the wanted nodes · top, entropy: of their probabilities [m]"""

    scores: Floats
    top: Floats
    entropy: Floats


def score_outputs(
    name: str,
    logits: Any,
    u: Any,
    options: Mapping[str, Any],
    near: Neighbours | None = None,
    workers: int = 1,
) -> ScoredOutputs:
    """Return the scores of all classes at the wanted nodes, with top probability and entropy.

    Args:
        name: of the score.
        logits: outputs at the wanted nodes or, with `near`, at all nodes that it names
            [k, classes].
        u: one uniform number per row of `logits` [k].
        options: of the score: `diffusion`; `penalty` and `k_reg`.
        near: the wanted nodes and their neighbours, for a score that needs them.
        workers: threads that share the rows.

    >>> found = score_outputs("TPS", [[0.0, 0.0]], [0.5], {})
    >>> found.scores.tolist(), found.top.tolist(), found.entropy.round(3).tolist()
    ([[0.5, 0.5]], [0.5], [0.693])
    """
    given, score = as_array(logits), score_named(name)
    base = score if score.base is None else score_named(score.base)
    small = given.size <= calibration_ranks.MAX_SCORES_FOR_NUMPY
    if small or given.dtype not in (np.float32, np.float64) or base.fill is None:
        return in_steps(name, given, u, options, near)
    if base is score:
        return _score_blocks(base.fill, given, u, options, workers)
    near = require_neighbours(name, near)
    base_outputs = _score_blocks(base.fill, given, u, {}, workers)
    places, diffusion = near.places, options["diffusion"]
    scores = diffuse_scores(
        base_outputs.scores, places, near.offsets, near.neighbours, diffusion, workers
    )
    return ScoredOutputs(scores, base_outputs.top[places], base_outputs.entropy[places])


def in_steps(
    name: str,
    logits: Any,
    u: Any,
    options: Mapping[str, Any],
    near: Neighbours | None = None,
) -> ScoredOutputs:
    """Return the same result by its defining steps, each over all rows."""
    probabilities = softmax64(logits)
    scores = node_scores(name, probabilities, u, options, near)
    wanted = probabilities if near is None else probabilities[near.places]
    return ScoredOutputs(scores, wanted.max(axis=1), entropies(wanted))


def _score_blocks(
    fill: Fill, logits: Array, u: Any, options: Mapping[str, Any], workers: int
) -> ScoredOutputs:
    rows, classes = logits.shape
    outputs = ScoredOutputs(np.empty((rows, classes)), np.empty(rows), np.empty(rows))
    uniform = as_uniforms(u, rows)
    share_rows(rows, workers, partial(_score_part, fill, logits, uniform, options, outputs))
    return outputs


def _score_part(
    fill: Fill,
    logits: Array,
    u: Floats,
    options: Mapping[str, Any],
    outputs: ScoredOutputs,
    start: int,
    stop: int,
) -> None:
    """Score the rows start to stop."""
    from ringfence.models.scores.kernels.softmax import (
        divide_by_sums,
        subtract_largest,
        sum_entropies,
    )

    classes = logits.shape[1]
    size, plan = max(16, NUMBERS_PER_BLOCK // classes), sum_plan(classes)
    block, logs = np.empty((size, classes)), np.empty((size, classes))
    for first in range(start, stop, size):
        rows = slice(first, min(stop, first + size))
        p, log_p = block[: rows.stop - first], logs[: rows.stop - first]
        subtract_largest(logits[rows], p)
        np.exp(p, out=p)
        divide_by_sums(p, plan, outputs.top[rows])
        fill(p, u[rows], outputs.scores[rows], **options)
        np.maximum(p, TINY, out=log_p)
        np.log(log_p, out=log_p)
        sum_entropies(p, log_p, plan, outputs.entropy[rows])


@lru_cache(maxsize=64)
def sum_plan(values: int) -> Array:
    """Return how numpy sums a row: sizes of parts, and how many waiting sums each is added to.

    >>> sum_plan(10).tolist(), sum_plan(300).tolist()
    ([[10, 0]], [[72, 0], [72, 1], [72, 0], [84, 2]])
    """
    if values <= MAX_SUMMED:
        return np.array([[values, 0]], np.int64)
    half = values // 2 - values // 2 % PARTS_BEGIN_AT
    parts = np.concatenate([sum_plan(half), sum_plan(values - half)])
    parts[-1, 1] += 1
    return parts
