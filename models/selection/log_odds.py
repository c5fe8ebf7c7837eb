"""How much nodes look like a class, for lists: the log odds of the class.

Probabilities saturate: of many sure nodes all would have 1.0, and the list could not tell which is
surest. The log odds of the same outputs keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.arrays import as_array


def class_log_odds(outputs: Any, classes: Sequence[int]) -> NDArray[np.float64]:
    """Return log(p / (1 - p)) of some classes, p the softmax of each row [m, len(classes)].

    >>> class_log_odds([[50.0, 0.0], [60.0, 0.0]], [0, 1]).tolist()
    [[50.0, -50.0], [60.0, -60.0]]
    """
    values = as_array(outputs)
    odds = np.empty((len(values), len(classes)))
    for place, class_ in enumerate(classes):
        others = np.delete(values, class_, axis=1).astype(np.float64)
        largest = others.max(axis=1, initial=-np.inf)
        base = np.where(np.isfinite(largest), largest, 0.0)
        with np.errstate(divide="ignore"):
            rest = base + np.log(np.exp(others - base[:, None]).sum(axis=1))
        odds[:, place] = values[:, class_] - rest
    return odds
