"""Weighted p-values as the correctly rounded quotient of exact sums.

p(k, w) = (w_1 + ... + w_k + w) / (w_1 + ... + w_n + w), the weights ordered by score. A float sum
would depend on the order of the nodes in its last bits, and a last bit decides a tie with alpha.
Doubles are integers times a power of two, so the sums are taken in integers, and Python divides
integers with one correct rounding. It follows, without any tolerance, that the order of the nodes
does not matter, that p grows with k, and that equal weights give the unweighted p to the bit.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from ringfence.models._arrays import Floats

SMALLEST = 5e-324  # p is positive in theory: never let it round to 0


def p_table(weights: Floats, test_weight: float) -> Floats:
    """Return p(k, test_weight) for k = 0..n, weights ordered by score: float64 [n + 1]."""
    *units, own = _integers(np.append(weights, test_weight))
    sums = list(accumulate(units, initial=own))
    return np.array([max(part / sums[-1], SMALLEST) for part in sums])


def _integers(weights: Floats) -> list[int]:
    mantissas, exponents = np.frexp(weights)
    shifts = exponents - exponents[weights > 0].min()
    whole = (mantissas * 2.0**53).astype(np.int64)
    return [m << max(s, 0) for m, s in zip(whole.tolist(), shifts.tolist(), strict=True)]
