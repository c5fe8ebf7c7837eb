"""What a conformity score is: a name, its options, and two functions; and the softmax before it.

Higher agrees more, everywhere. All arithmetic is float64: in float32 an overconfident network ties
most of its scores at -1, and nearly every set changes.

A score may only depend on a node's probabilities, its u and (DAPS) its neighbours, and not on how
classes or nodes are numbered: classes with equal probabilities get equal scores, and sums run over
sorted values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.models.arrays import Array, Floats, as_array, like

__all__ = ["ConformityScore", "entropies", "softmax64"]

ROWS_PER_BLOCK = 2_048
TINY = np.finfo(np.float64).tiny  # stands for 0 under a logarithm


@dataclass(frozen=True, slots=True)
class ConformityScore:
    """One score as the registry offers it.

    all_classes: ``(probabilities [n, classes], u [n], **options) -> [n, classes]`` · true_class:
    ``(probabilities, u, classes [n], **options) -> [n]``, the same numbers for one class per node ·
    options: keywords that both need besides · needs_edges: whether one of them is ``edge_index`` ·
    base: the score that is averaged with the neighbours' (`node_scores` does it at some nodes) ·
    fill: ``(probabilities, u, found, **options)`` writes ``all_classes`` of a block of rows into
    ``found`` [n, classes], checking nothing but the probabilities; None with a base.
    """

    name: str
    all_classes: Callable[..., Array]
    true_class: Callable[..., Array]
    options: tuple[str, ...] = ()
    needs_edges: bool = False
    base: str | None = None
    fill: Callable[..., None] | None = None


def softmax64(logits: Any) -> Array:
    """Return the softmax over classes in float64, [n, classes].

    >>> softmax64([[0.0, 0.0]])
    array([[0.5, 0.5]])
    """
    found = np.array(as_array(logits), np.float64, order="C")  # sums run along rows of memory
    for part in _blocks(found):
        part -= part.max(axis=-1, keepdims=True)
        np.exp(part, out=part)
        part /= part.sum(axis=-1, keepdims=True)
    return like(logits, found)


def entropies(probabilities: Floats) -> Floats:
    """Return the entropy of each row of probabilities, in nats [n].

    >>> entropies(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3).tolist()
    [-0.0, 0.693]
    """
    found = np.empty(len(probabilities))
    for place, part in enumerate(_blocks(probabilities)):
        logs = np.maximum(part, TINY)
        np.log(logs, out=logs)
        logs *= part
        start = place * ROWS_PER_BLOCK
        np.negative(logs.sum(axis=1), out=found[start : start + len(part)])
    return found


def _blocks(values: Floats) -> Iterator[Floats]:
    """Yield views of so many rows that they stay in near caches: each is read from memory once."""
    rows = values.reshape(-1, values.shape[-1]) if values.size else values[:0]
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        yield rows[start : start + ROWS_PER_BLOCK]
