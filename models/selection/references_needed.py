"""How many reference nodes a list needs before it can hold anything."""

from __future__ import annotations

import math


def references_needed(wrong_share: float, may_be_wrong: float) -> int:
    """Return how many wrong reference nodes a list needs that shall hold all right nodes of a run.

    The smallest p-value is wrong_share / (n + 1) with n wrong references. Benjamini and Hochberg
    compare it with may_be_wrong * k / m where the list holds k of m nodes; all right nodes are a
    share 1 - wrong_share of them. With fewer references such a list stays empty, however sure the
    model is: with three nodes of a class nothing can be said to be "not of the class" at 1 %.

    >>> references_needed(wrong_share=0.06, may_be_wrong=0.01)  # clear: mules are the wrong ones
    6
    >>> references_needed(wrong_share=0.94, may_be_wrong=0.2)  # investigate
    78
    """
    right = max(1.0 - wrong_share, 1e-9)
    return max(1, math.ceil(wrong_share / (may_be_wrong * right) - 1e-9) - 1)
