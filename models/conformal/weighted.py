"""Weighted p-values as the correctly rounded quotient of exact sums.

p(k, w) = (w_1 + ... + w_k + w) / (w_1 + ... + w_n + w), the weights ordered by score. A float sum
would depend on the order of the nodes in its last bits, and a last bit decides a tie with alpha.
Doubles are integers times a power of two, so the sums are taken in integers, and Python divides
integers with one correct rounding. It follows, without any tolerance, that the order of the nodes
does not matter, that p grows with k, and that equal weights give the unweighted p to the bit.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from ringfence.models.arrays import Array, Floats
from ringfence.models.conformal import calibration_ranks

SMALLEST_P = 5e-324  # p is positive in theory: never let it round to 0


@dataclass(frozen=True, slots=True)
class Sums:
    """Running sums of the weights, and the test weights, in whole multiples of one power of two."""

    sums: list[int]
    test_masses: dict[float, int]

    def p(self, test_weight: float, k: int) -> float:
        """Return p(k, test_weight), rounded once."""
        test_mass = self.test_masses[test_weight]
        return max((self.sums[k] + test_mass) / (self.sums[-1] + test_mass), SMALLEST_P)


def exact_sums(weights: Floats, tests: Floats) -> Sums:
    """Return the exact sums of weights ordered by score, ready for these test weights."""
    distinct = np.unique(tests)
    whole = _integers(np.concatenate((weights, distinct)))
    sums = list(accumulate(whole[: len(weights)], initial=0))
    return Sums(sums, dict(zip(distinct.tolist(), whole[len(weights) :], strict=True)))


def p_table(weights: Floats, test_weight: float) -> Floats:
    """Return p(k, test_weight) for k = 0..n: float64 [n + 1].

    >>> p_table(np.array([1.0, 0.5]), test_weight=0.5).tolist()
    [0.25, 0.75, 1.0]
    """
    exact = exact_sums(weights, np.array([test_weight]))
    test_mass = exact.test_masses[test_weight]
    total = exact.sums[-1] + test_mass
    return np.array([max((part + test_mass) / total, SMALLEST_P) for part in exact.sums])


def first_above(weights: Floats, tests: Floats, alphas: list[float]) -> Array:
    """Return the smallest k with p(k, test weight) > alpha, n + 1 if there is none: [alphas, m]."""
    exact = exact_sums(weights, tests)
    ranks = range(len(weights) + 1)
    distinct, back = np.unique(tests, return_inverse=True)
    rising = [partial(exact.p, test_weight) for test_weight in distinct.tolist()]
    places = [[bisect_right(ranks, alpha, key=p) for p in rising] for alpha in alphas]
    return np.array(places, dtype=np.int64).reshape(len(alphas), -1)[:, back]


def p_each(weights: Floats, ranks: Array, tests: Floats) -> Floats:
    """Return p(rank, test weight of the row) for ranks [m, classes] and test weights [m]."""
    large = ranks.size > calibration_ranks.MAX_SCORES_FOR_NUMPY
    p_values = _compiled(weights, ranks, tests) if large else np.full(ranks.shape, -1.0)
    unsure = np.argwhere(p_values < 0.0).tolist()
    if unsure:
        exact = exact_sums(weights, tests)
        for i, y in unsure:
            p_values[i, y] = exact.p(float(tests[i]), int(ranks[i, y]))
    return p_values


def _compiled(weights: Floats, ranks: Array, tests: Floats) -> Floats:
    from ringfence.models.conformal.kernels.weighted import quotients, running_sums

    largest = max(weights.max(initial=0.0), tests.max())
    down = -int(np.frexp(largest)[1])
    high, low = np.empty(len(weights) + 1), np.empty(len(weights) + 1)
    running_sums(np.ldexp(weights, down), high, low)
    p_values = np.empty(ranks.shape)
    quotients(ranks, np.ldexp(tests, down), high, low, p_values)
    return p_values


def _integers(weights: Floats) -> list[int]:
    mantissas, exponents = np.frexp(weights)
    shifts = exponents - exponents[weights > 0].min(initial=1024)
    whole = (mantissas * 2.0**53).astype(np.int64)
    return [m << max(s, 0) for m, s in zip(whole.tolist(), shifts.tolist(), strict=True)]
