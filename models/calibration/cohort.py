"""When the nodes of a run join calibration: together, once their known share stops growing.

Classes rarely become known in a random order. If one class is known early, nodes that join one by
one fill the window with it, and the promise follows them instead of everybody. A run's nodes are
one cohort: they wait until a run of that age usually has its classes, and then join together, as
many as are known. That age is measured on the classes that became known so far. (That nothing was
new since the run before says too little: between the early class and the others lies a quiet time.)
Only runs that are old enough to show it are measured: of a young run only early classes can be
known, so that it would always look settled. Classes of the same run that come later still join as
they come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

KNOWN_BY_THEN = 0.95
"""Share of a run's known classes that had come by its own settled age."""

RUNS_BY_THEN = 0.8
"""Share of runs that had settled by the common age: a first run over a backlog delays nobody."""

NEWEST_RUNS = 40
"""How many of the runs that are old enough are measured: the time that classes take may change."""

FIRST_RUNS = 5
"""Nobody joins before a run is this old: one can't tell yet an early class from all classes."""


def settled_age(of_run: Ints, lags: Ints) -> int:
    """Return after how many runs a run's classes have usually come; 0 before any is known.

    Args:
        of_run: place of the run that evaluated each known node [labels].
        lags: how many runs after that one its class was noticed [labels].

    >>> settled_age(np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 2, 2]))
    2
    """
    ages = [
        np.quantile(lags[of_run == run], KNOWN_BY_THEN, method="inverted_cdf")
        for run in np.unique(of_run)
    ]
    return int(np.quantile(ages, RUNS_BY_THEN, method="inverted_cdf")) if ages else 0


def settled(runs: int, of_run: Ints, lags: Ints) -> Mask:
    """Return which runs' nodes may join: some class is known, and the run is old enough.

    Args:
        runs: how many runs there were; the next one asks.
        of_run: as in `settled_age`.
        lags: as in `settled_age`.

    >>> settled(6, np.array([0, 0, 3, 4, 5]), np.array([1, 2, 2, 2, 1])).tolist()
    [True, False, False, True, True, False]
    """
    if runs < FIRST_RUNS:
        return np.zeros(runs, np.bool_)
    known = np.bincount(of_run, minlength=runs) > 0
    age = runs - np.arange(runs)
    return np.asarray(known & (age >= _waiting_time(age, of_run, lags)))


def _waiting_time(age: Ints, of_run: Ints, lags: Ints) -> int:
    """The settled age of runs that are at least twice as old; first of the older half of all."""
    time = _age_of(np.flatnonzero(2 * age >= len(age)), of_run, lags)
    while True:
        longer = _age_of(np.flatnonzero(age >= 2 * time)[-NEWEST_RUNS:], of_run, lags)
        if longer <= time:
            return time
        time = longer


def _age_of(runs: Ints, of_run: Ints, lags: Ints) -> int:
    among = np.isin(of_run, runs)
    return settled_age(of_run[among], lags[among])
