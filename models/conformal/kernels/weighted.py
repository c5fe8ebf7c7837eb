"""Compiled weighted p-values with twice the precision of a double, and a mark where it may fail.

A sum is kept as high + low, two doubles that do not overlap (Dekker 1971). The quotient of two
such sums is known to about 100 bits; rounding it to 53 is right unless it lies within the error of
the middle between two doubles (Ziv 1991). Those few are marked for exact integers.
"""

from __future__ import annotations

from ringfence.models.arrays import Array, Floats
from ringfence.models.compile import compiled, inlined

UNSURE = -1.0
MIN_SHARE_OF_TOTAL = 2.0**-400  # below this share of the total, low parts run out of exponents
DEKKER_SPLIT = 2.0**27 + 1.0


@inlined
def add(high: float, low: float, value: float) -> tuple[float, float]:
    """Return (high + low) + value, all of them at least 0."""
    total = high + value
    shift = total - high
    rest = low + ((high - (total - shift)) + (value - shift))
    upper = total + rest
    return upper, rest - (upper - total)


@inlined
def product_rest(x: float, y: float, product: float) -> float:
    """Return x y - product exactly, product being x y rounded."""
    a, b = x * DEKKER_SPLIT, y * DEKKER_SPLIT
    x_high, y_high = a - (a - x), b - (b - y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


@compiled
def running_sums(weights: Floats, high: Floats, low: Floats) -> None:
    """Write w_1 + ... + w_k for k = 0..n."""
    high[0], low[0] = 0.0, 0.0
    for k in range(len(weights)):
        high[k + 1], low[k + 1] = add(high[k], low[k], weights[k])


@compiled
def quotients(ranks: Array, tests: Floats, high: Floats, low: Floats, p_values: Floats) -> int:
    """Write p(rank, test weight) of each row's ranks; return how many are UNSURE."""
    n, unsure = len(high) - 1, 0
    margin = (n + 16) * 2.0**-102
    for i in range(len(tests)):
        total, total_low = add(high[n], low[n], tests[i])
        for y in range(ranks.shape[1]):
            k = ranks[i, y]
            part, part_low = add(high[k], low[k], tests[i])
            guess = part / total
            back = guess * total
            rest = ((part - back) - product_rest(guess, total, back)) + part_low
            step = (rest - guess * total_low) / total
            p = guess + step
            left, error = step - (p - guess), margin * p
            sure = (
                p + (left + error) == p
                and p + (left - error) == p
                and part > MIN_SHARE_OF_TOTAL * total
            )
            p_values[i, y] = p if sure else UNSURE
            unsure += 0 if sure else 1
    return unsure
