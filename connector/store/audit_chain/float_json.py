"""Rows of numbers as JSON, many at a time: the very texts that `dumps` makes, in less time.

A number's text is the shortest one that reads back as the same number, and of several the nearest:
Raffaello Giulietti's Schubfach ("The Schubfach way to render doubles") finds its digits with three
products of 64 by 128 bits. Its form (where the point stands, when there is an exponent) is that of
Python's `repr`. numba compiles it at the first call; for few numbers `dumps` is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.store.engine import dumps

MIN_NUMBERS = 20_000  # in one call; below, importing numba costs more than it saves
MAX_TEXT_BYTES = 25  # of a number with the comma or bracket behind it: -1.2345678901234567e-300
LOWEST_POWER, HIGHEST_POWER = -292, 324  # of ten, that doubles need

Bytes = NDArray[np.uint8]


def json_rows(values: NDArray[np.float64]) -> list[str]:
    """Return each row as JSON.

    >>> json_rows(np.array([[0.5, 1.0], [0.25, 1e-9]]))
    ['[0.5,1.0]', '[0.25,1e-09]']
    """
    if values.size < MIN_NUMBERS or not np.isfinite(values).all():  # dumps refuses the others
        whole = dumps(values.tolist())  # [[…],[…]]
        return [f"[{row}]" for row in whole[2:-2].split("],[")]
    return compiled_json_rows(np.ascontiguousarray(values))


def compiled_json_rows(values: NDArray[np.float64]) -> list[str]:
    """Do what `json_rows` does for finite numbers, however few."""
    text = np.empty(len(values) * (1 + MAX_TEXT_BYTES * values.shape[1]), np.uint8)
    ends = np.empty(len(values) + 1, np.int64)
    high, low = _powers()
    _compiled()(values.view(np.uint64), high, low, text, ends)
    whole, stops = text[: int(ends[-1])].tobytes().decode("ascii"), ends.tolist()
    return [whole[a:b] for a, b in pairwise(stops)]


@cache
def _powers() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Powers of ten in 128 bits, rounded up, the highest bit set: their high and low halves."""
    high, low = [], []
    for power in range(LOWEST_POWER, HIGHEST_POWER + 1):
        bits = ((power * 1_741_647) >> 19) - 127  # floor(log2(10^power)) - 127
        above, below = 10 ** max(power, 0), 10 ** max(-power, 0)
        above <<= max(-bits, 0)
        below <<= max(bits, 0)
        value = -(-above // below)
        high.append(value >> 64)
        low.append(value & (2**64 - 1))
    return np.array(high, np.uint64), np.array(low, np.uint64)


@cache
def _compiled() -> Callable[..., None]:
    from numba import njit

    try:
        made: Any = njit(_write_rows, cache=True)
    except RuntimeError:  # numba found no folder to write its cache to
        made = njit(_write_rows)
    return made  # type: ignore[no-any-return]


def _write_rows(
    bits: NDArray[np.uint64],
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
    text: Bytes,
    ends: NDArray[np.int64],
) -> None:
    """Write all rows one after the other; only unsigned numbers, or numba would take floats."""
    zero, unit, two, four, ten = (
        np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(10),
    )  # fmt: skip
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    digits = np.empty(20, np.uint8)
    scaled = np.empty(3, np.uint64)
    at = 0
    ends[0] = 0
    for row in range(bits.shape[0]):
        text[at] = 91  # [
        at += 1
        for column in range(bits.shape[1]):
            raw = bits[row, column]
            if raw >> np.uint64(63):
                text[at] = 45  # -
                at += 1
            fraction = raw & np.uint64(0xFFFFFFFFFFFFF)
            exponent = np.int64((raw >> np.uint64(52)) & np.uint64(0x7FF))
            decimal, power = zero, np.int64(0)
            if exponent == 0 and fraction == zero:
                decimal = zero
            else:
                c, q = fraction, np.int64(-1074)
                if exponent != 0:
                    c, q = fraction | np.uint64(0x10000000000000), exponent - 1075
                closer = fraction == zero and exponent > 1
                odd = c & unit
                k = (q * 1262611 - (524031 if closer else 0)) >> 22
                h = np.uint64(q + ((-k * 1741647) >> 19) + 1)
                g1, g0 = high[-k - LOWEST_POWER], low[-k - LOWEST_POWER]
                scaled[0] = (four * c - (unit if closer else two)) << h
                scaled[1] = (four * c) << h
                scaled[2] = (four * c + two) << h
                for j in range(3):
                    p1, p0 = scaled[j] >> half, scaled[j] & mask
                    # the high word of g0 * p
                    a1, a0 = g0 >> half, g0 & mask
                    mid = a1 * p0 + ((a0 * p0) >> half)
                    x1 = a1 * p1 + (mid >> half) + (((mid & mask) + a0 * p1) >> half)
                    # both words of g1 * p
                    a1, a0 = g1 >> half, g1 & mask
                    mid = a1 * p0 + ((a0 * p0) >> half)
                    y1 = a1 * p1 + (mid >> half) + (((mid & mask) + a0 * p1) >> half)
                    y0 = g1 * scaled[j] + x1
                    if y0 < x1:
                        y1 += unit
                    scaled[j] = y1 | (unit if y0 > unit else zero)
                lower, value, upper = scaled[0] + odd, scaled[1], scaled[2] - odd
                s = value >> two
                decimal, power = s, k
                done = False
                if s >= ten:
                    tenth = s // ten
                    below = lower <= np.uint64(40) * tenth
                    above = np.uint64(40) * tenth + np.uint64(40) <= upper
                    if below != above:
                        decimal, power, done = tenth + (unit if above else zero), k + 1, True
                if not done:
                    below = lower <= four * s
                    above = four * s + four <= upper
                    if below != above:
                        decimal = s + (unit if above else zero)
                    else:
                        middle = four * s + two
                        if value > middle or (value == middle and (s & unit) != zero):
                            decimal = s + unit
                while decimal % ten == zero:
                    decimal //= ten
                    power += 1
            count = 0
            while True:
                digits[count] = np.uint8(48 + decimal % ten)
                decimal //= ten
                count += 1
                if decimal == zero:
                    break
            point = count + power  # 0.d1d2… times ten to this
            if -4 < point <= 16:
                if point <= 0:
                    text[at], text[at + 1] = 48, 46
                    at += 2
                    for _ in range(-point):
                        text[at] = 48
                        at += 1
                for j in range(count if count > point else point):
                    if j == point and point > 0:
                        text[at] = 46
                        at += 1
                    text[at] = digits[count - 1 - j] if j < count else 48
                    at += 1
                if point >= count:
                    text[at], text[at + 1] = 46, 48
                    at += 2
            else:
                text[at] = digits[count - 1]
                at += 1
                if count > 1:
                    text[at] = 46
                    at += 1
                    for j in range(1, count):
                        text[at] = digits[count - 1 - j]
                        at += 1
                shown = point - 1
                text[at], text[at + 1] = 101, 45 if shown < 0 else 43  # e, sign
                at += 2
                shown = abs(shown)
                if shown >= 100:
                    text[at] = 48 + shown // 100
                    at += 1
                text[at], text[at + 1] = 48 + shown // 10 % 10, 48 + shown % 10
                at += 2
            text[at] = 44  # ,
            at += 1
        text[at - 1] = 93  # ]
        ends[row + 1] = at
