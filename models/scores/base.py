"""What a conformity score is: a name, its options, and two functions; and the softmax before it.

Higher agrees more, everywhere. All arithmetic is float64: in float32 an overconfident network ties
most of its scores at -1, and nearly every set changes.

A score may only depend on a node's probabilities, its u and (DAPS) its neighbours, and not on how
classes or nodes are numbered: classes with equal probabilities get equal scores, and sums run over
sorted values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.models.arrays import Array, as_array, like

__all__ = ["ConformityScore", "softmax64"]


@dataclass(frozen=True, slots=True)
class ConformityScore:
    """One score as the registry offers it.

    all_classes: ``(probabilities [n, classes], u [n], **options) -> [n, classes]`` · true_class:
    ``(probabilities, u, classes [n], **options) -> [n]``, the same numbers for one class per node ·
    options: keywords that both need besides · needs_edges: whether one of them is ``edge_index`` ·
    base: the score that is averaged with the neighbours' (`node_scores` does it at some nodes).
    """

    name: str
    all_classes: Callable[..., Array]
    true_class: Callable[..., Array]
    options: tuple[str, ...] = ()
    needs_edges: bool = False
    base: str | None = None


def softmax64(logits: Any) -> Array:
    """Return the softmax over classes in float64, [n, classes].

    >>> softmax64([[0.0, 0.0]])
    array([[0.5, 0.5]])
    """
    given = np.ascontiguousarray(as_array(logits), np.float64)  # sums run along rows of memory
    given = np.exp(given - given.max(axis=-1, keepdims=True))
    return like(logits, given / given.sum(axis=-1, keepdims=True))
