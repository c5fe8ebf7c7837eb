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

import torch

from ringfence.models.arrays import as_array

__all__ = ["ConformityScore", "softmax64"]


@dataclass(frozen=True, slots=True)
class ConformityScore:
    """One score as the registry offers it.

    all_classes: ``(probabilities [n, classes], u [n], **options) -> [n, classes]`` · true_class:
    ``(probabilities, u, classes [n], **options) -> [n]``, the same numbers for one class per node ·
    options: keywords that both need besides · needs_edges: whether one of them is ``edge_index`` ·
    library_only: whether no job can choose it, because none passes its options.
    """

    name: str
    all_classes: Callable[..., torch.Tensor]
    true_class: Callable[..., torch.Tensor]
    options: tuple[str, ...] = ()
    needs_edges: bool = False
    library_only: bool = False


def softmax64(logits: Any) -> torch.Tensor:
    """Return the softmax over classes in float64, [n, classes].

    >>> softmax64([[0.0, 0.0]])
    tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    given = logits if isinstance(logits, torch.Tensor) else torch.as_tensor(as_array(logits))
    return torch.softmax(given.detach(), dim=-1, dtype=torch.float64)
