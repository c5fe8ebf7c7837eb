"""How much one column tells of the class on held-out nodes, in shares of the class's entropy.

P(class | value) is counted on some nodes and scored on others. In-sample entropy would flag every
identifier: tail numbers of planes tell 46 % of the class in-sample and 0 % held out.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bin_values", "column_shares", "told_share"]

BINS = 16  # that numbers are sorted into


def told_share(
    seen: Sequence[tuple[Hashable, Hashable]], held: Sequence[tuple[Hashable, Hashable]]
) -> float:
    """Return the share of the class's entropy on ``held`` that values tell, learnt on ``seen``.

    Both are pairs of a value and a class. Below 0 where the value misleads.

    >>> pairs = [("a", "x"), ("b", "y")] * 50
    >>> told_share(pairs, pairs) > 0.8, told_share([("a", "x"), ("a", "y")] * 50, pairs) < 0.01
    (True, True)
    """
    prior = Counter(y for _, y in seen)
    given: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for value, y in seen:
        given[value][y] += 1
    base = tell = 0.0
    for value, y in held:
        chance = (prior[y] + 1) / (len(seen) + len(prior) + 1)
        counts: Counter[Hashable] = given.get(value, Counter())
        weight = len(prior)  # as many imagined nodes of the common shares as there are classes
        told = (counts[y] + weight * chance) / (sum(counts.values()) + weight)
        base -= math.log(chance)
        tell -= math.log(told)
    return 1.0 - tell / base if base > 0 else 0.0


def bin_values(values: Sequence[Any]) -> list[Hashable]:
    """Return values as a few kinds: numbers by quantile, the rest by their text."""
    numbers = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    if len(set(numbers)) > BINS and len(numbers) > len(values) / 2:
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, BINS + 1)[1:-1]))
        return [_bin(value, edges) for value in values]
    return [None if value is None else repr(value) for value in values]


def _bin(value: Any, edges: NDArray[np.float64]) -> Hashable:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(np.searchsorted(edges, value))


def column_shares(
    table: NDArray[np.float32], truth: NDArray[np.int64], seen: int
) -> NDArray[np.float64]:
    """Return what each column [n, d] tells of the classes of the rows from ``seen`` on [d]."""
    classes = truth.tolist()
    shares = np.zeros(table.shape[1])
    for at in range(table.shape[1]):
        values = [None if math.isnan(x) else x for x in table[:, at].tolist()]
        pairs = list(zip(bin_values(values), classes, strict=True))
        shares[at] = told_share(pairs[:seen], pairs[seen:])
    return shares
