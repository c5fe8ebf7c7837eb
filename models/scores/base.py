"""What a conformity score is: a name, two functions, its traits; and the softmax before it.

A higher score always means better agreement. All arithmetic is float64: in float32 an overconfident
network ties most of its scores at -1, and nearly every set changes.

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
EDGES = "edge_index"  # the option by which a score gets the graph's edges
DIFFUSION_OPTIONS = (EDGES, "diffusion")  # of a score that is averaged with the neighbours'
TINY = np.finfo(np.float64).tiny  # stands for 0 under a logarithm


@dataclass(frozen=True, slots=True)
class ConformityScore:
    """One score as the registry offers it.

    all_classes: ``(probabilities [n, classes], u [n], **options) -> [n, classes]`` · true_class:
    ``(probabilities, u, classes [n], **options) -> [n]``, the same numbers for one class per node ·
    options: more keywords that both need · needs_edges: whether one of them is ``edge_index`` ·
    base: the score that is averaged with the neighbours' (`node_scores` does it at some nodes) ·
    fill: ``(probabilities, u, scores, **options)`` writes ``all_classes`` of a block of rows into
    ``scores`` [n, classes], checking nothing but the probabilities; None with a base ·
    randomised: adds up the mass of likelier classes with a share u of the class's own (APS and what
    is made from it), so that hard classes are covered like easy ones at the price of larger sets;
    other scores take the class's probability as it is · safe_without_bands: keeps the promise where
    edges arrive in random order and nodes are not compared within bands of degree (measured).
    """

    name: str
    all_classes: Callable[..., Array]
    true_class: Callable[..., Array]
    options: tuple[str, ...] = ()
    needs_edges: bool = False
    base: str | None = None
    fill: Callable[..., None] | None = None
    randomised: bool = False
    safe_without_bands: bool = False

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the options that are settings of `[conformal]`: all but the edges."""
        return tuple(option for option in self.options if option != EDGES)

    def options_from(self, settings: object, edges: Any) -> dict[str, Any]:
        """Return both functions' keywords: attributes of `settings`, and the edges if needed."""
        given = {name: getattr(settings, name) for name in self.settings}
        return given | {EDGES: edges} if self.needs_edges else given


def softmax64(logits: Any) -> Array:
    """Return the softmax over classes in float64, [n, classes].

    >>> softmax64([[0.0, 0.0]])
    array([[0.5, 0.5]])
    """
    probabilities = np.array(
        as_array(logits), np.float64, order="C"
    )  # sums run along rows of memory
    for part in _blocks(probabilities):
        part -= part.max(axis=-1, keepdims=True)
        np.exp(part, out=part)
        part /= part.sum(axis=-1, keepdims=True)
    return like(logits, probabilities)


def entropies(probabilities: Floats) -> Floats:
    """Return the entropy of each row of probabilities, in nats [n].

    >>> entropies(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3).tolist()
    [-0.0, 0.693]
    """
    out = np.empty(len(probabilities))
    for place, part in enumerate(_blocks(probabilities)):
        logs = np.maximum(part, TINY)
        np.log(logs, out=logs)
        logs *= part
        start = place * ROWS_PER_BLOCK
        np.negative(logs.sum(axis=1), out=out[start : start + len(part)])
    return out


def _blocks(values: Floats) -> Iterator[Floats]:
    """Yield views of so many rows that they stay in near caches: each is read from memory once."""
    rows = values.reshape(-1, values.shape[-1]) if values.size else values[:0]
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        yield rows[start : start + ROWS_PER_BLOCK]
