"""The rule of settled runs of versions trained before `cohort`: one delay for all classes.

A run is settled once it is as old as runs usually are when 95 % of their known classes have come,
and not among the first five runs. One class that comes early, and others more than five runs later,
are taken for all classes by it (docs/mathematics.md, 7a). Those versions keep it.
"""

from __future__ import annotations

import numpy as np

from ringfence.models.calibration.cohort import (
    FIRST_RUNS,
    NEWEST_RUNS,
    Ints,
    Labels,
    Mask,
    settled_age,
)


def settle_by_age(runs: int, labels: Labels) -> tuple[Mask, int]:
    """Return which runs are settled when the next one is made [runs], and the delay in runs.

    >>> labels = Labels(np.array([0, 0, 3, 4, 5]), np.zeros(5, int), np.array([1, 2, 2, 2, 1]))
    >>> settle_by_age(6, labels)[0].tolist()
    [True, False, False, True, True, False]
    """
    age = runs - np.arange(runs)
    delay = _waiting_time(age, labels)
    known = np.bincount(labels.of_run, minlength=runs) > 0
    return np.asarray(known & (age >= delay) & (runs >= FIRST_RUNS)), delay


def _waiting_time(age: Ints, labels: Labels) -> int:
    """The settled age of runs that are at least twice as old; first of the older half of all."""
    time = _age_of(np.flatnonzero(2 * age >= len(age)), labels)
    while True:
        longer = _age_of(np.flatnonzero(age >= 2 * time)[-NEWEST_RUNS:], labels)
        if longer <= time:
            return time
        time = longer


def _age_of(runs: Ints, labels: Labels) -> int:
    among = np.isin(labels.of_run, runs)
    return settled_age(labels.of_run[among], labels.lags[among])
