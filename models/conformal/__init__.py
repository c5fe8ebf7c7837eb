"""The conformal core: thresholds, p-values, prediction sets, and what they are computed from.

>>> from ringfence.models.conformal import threshold
>>> float(threshold([0.1, 0.5, 0.9], alpha=0.5))
0.5
"""

from ringfence.models.conformal.sets import (
    fill_empty,
    p_values,
    prediction_sets,
    sets_from_p_values,
    threshold,
)

__all__ = ["fill_empty", "p_values", "prediction_sets", "sets_from_p_values", "threshold"]
