"""How many nodes of an audit sample notice that coverage has fallen, exactly from the binomial law.

With N sampled nodes of known class the number covered is binomial. One look says *watch* outside
the equal-tailed band of 95 %, which are 5 % of looks when all is well, half of them on either side.
The power is the probability of a number below that band at the lower coverage.

    >>> nodes_to_notice(promised=0.9, fallen_to=0.85)
    362
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FALSE_ALARMS = 0.05
POWER = 0.8
MAX_NODES = 1 << 20


@lru_cache(maxsize=64)
def nodes_to_notice(
    promised: float, fallen_to: float, false_alarms: float = FALSE_ALARMS, power: float = POWER
) -> int:
    """Return the fewest nodes from which on every larger sample has the power, too.

    Counts are whole, so power rises in saw teeth: the last N below `power` decides. At most
    MAX_NODES.

    >>> nodes_to_notice(0.9, 0.7) < nodes_to_notice(0.9, 0.8)
    True
    """
    if not 0 < fallen_to < promised < 1:
        raise ValueError(
            f"coverage falls from {promised:g} to {fallen_to:g}; needed: from below 1 to a lower "
            "share above 0"
        )
    most = 64
    while most < MAX_NODES:
        sizes = np.arange(1, most + 1)
        weak = np.flatnonzero(powers(sizes, promised, fallen_to, false_alarms) < power)
        last = int(sizes[weak[-1]]) if len(weak) else 0
        if 2 * last < most:  # far beyond the last tooth
            return last + 1
        most *= 2
    return MAX_NODES


def powers(
    nodes: NDArray[np.int64], promised: float, fallen_to: float, false_alarms: float = FALSE_ALARMS
) -> NDArray[np.float64]:
    """Return the probability that samples of these sizes are found too low at a lower coverage."""
    from scipy.stats import binom  # slow to import: doctor alone needs it

    usual = binom.ppf(false_alarms / 2, nodes, promised)  # the lower end of the band
    return np.asarray(binom.cdf(usual - 1, nodes, fallen_to))
