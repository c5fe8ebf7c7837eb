"""The rank of the threshold, floor(alpha (n + 1)), free of floating-point surprises.

A p-value is k / (n + 1), rounded once to the nearest double. Rounding is monotone, so
``k / (n + 1) > alpha`` between doubles can differ from the same comparison between the real
numbers only where both round to the same double. For alpha = r / s in lowest terms the two differ
by at least 1 / (s (n + 1)) unless they are equal, and doubles below 1 are at most 2**-53 apart: the
comparison is exact whenever s (n + 1) < 2**52, i.e. for a million nodes and nine decimals of alpha.
Where they are equal, both round to the same double and `>` says no, as the theory does.

So one rule serves everywhere: the double p, the double alpha, and `>`. It is what Cypher does with
``WHERE r.p > 0.1``.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def read_alpha(alpha: Any) -> float:
    """Read one alpha as the double nearest to the decimal it prints as.

    A float32 0.7 is 0.699999988 as a double, and would take the rank of another alpha; it prints
    as 0.7 and is read so.

    >>> read_alpha(np.float32(0.7))
    0.7
    """
    value = float(str(alpha)) if isinstance(alpha, np.floating) else float(alpha)
    if not 0.0 <= value <= 1.0:
        raise ValueError(
            f"alpha = {value} is not a share of nodes: give a number between 0 and 1, "
            "such as 0.1 for sets that hold the true class 90 % of the time"
        )
    return value


def read_alphas(alpha: Any) -> tuple[list[float], bool]:
    """Read one alpha or several; the flag says whether it was a single number."""
    array = np.asarray(alpha)
    if array.ndim > 1:
        raise ValueError(f"alpha has shape {array.shape}: give one number or a flat list of them")
    items = array.reshape(-1)
    plain = items.tolist() if array.dtype == np.float64 else list(items)
    return [read_alpha(item) for item in plain], array.ndim == 0


def rank(n: int, alpha: float) -> int:
    """Return l = floor(alpha (n + 1)): the threshold is the l-th smallest calibration score.

    l = 0 means that no finite threshold exists (-inf, the full set). This is the largest l with
    l / (n + 1) <= alpha, compared as doubles; see the module's text for why that is exact.

    >>> rank(9, 0.1), rank(8, 0.1), rank(999, 0.3)
    (1, 0, 300)
    """
    if n < 0:
        raise ValueError(f"{n} calibration nodes: the number must be 0 or more")
    nearest = int(alpha * (n + 1))  # within one of the truth
    if nearest / (n + 1) > alpha:
        return nearest - 1
    return nearest + 1 if (nearest + 1) / (n + 1) <= alpha else nearest
