"""Which nodes of known class the exchangeability monitor compares next, and in which order.

Labels come to it as they become known. Where some classes become known sooner than others, that
would be no fair draw: the first labels of each run are of the early classes alone, and the monitor
would take them for a change. So labels of a run of which only early classes are known are held back
until the run is settled (`models.calibration.cohort`), and then come in a random order.

    >>> nodes = KnownTimes(np.array([1, 1, 2]), np.array([50, 60, 70]))
    >>> step = choose_new(nodes, mark_ns=55, held={}, early={2})
    >>> step.new.tolist(), step.reference.tolist(), step.held
    ([False, True, False], [True, False, False], {2: 55})
    >>> choose_new(nodes, mark_ns=70, held={2: 55}, early=()).new.tolist()
    [False, False, True]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Held = Mapping[int, int]
"""Run -> up to when its classes were noticed that the monitor has seen."""


@dataclass(frozen=True, slots=True)
class KnownTimes:
    """Of nodes of known class the run that evaluated each, and when its class was noticed [m]."""

    evaluated_in: NDArray[np.int64]
    noticed_ns: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NewNodes:
    """Which nodes are new to the monitor, and which it has seen.

    new, reference: masks over the nodes [m]. released_ns: when each could be compared [m]; for
    nodes that were held back, when the last new class of their run was noticed. held: runs whose
    labels are held back now.
    """

    new: NDArray[np.bool_]
    reference: NDArray[np.bool_]
    released_ns: NDArray[np.int64]
    held: Held


def choose_new(nodes: KnownTimes, mark_ns: int, held: Held, early: Collection[int]) -> NewNodes:
    """Return which nodes the monitor compares at this run.

    Args:
        nodes: the evaluated nodes of known class.
        mark_ns: up to when classes were noticed at the last run.
        held: runs whose labels were held back at the last run.
        early: runs of which only early classes are known.
    """
    runs, of_run = np.unique(nodes.evaluated_in, return_inverse=True)
    since = np.array([held.get(int(run), mark_ns) for run in runs], np.int64)
    unseen = nodes.noticed_ns > since[of_run]
    is_early = np.isin(runs, np.array(list(early), np.int64))
    new = unseen & ~is_early[of_run]
    waits = np.unique(of_run[unseen & is_early[of_run]])
    released = nodes.noticed_ns.copy()
    for place in np.flatnonzero(~is_early & np.isin(runs, np.array(list(held), np.int64))):
        of_held = new & (of_run == place)
        released[of_held] = nodes.noticed_ns[of_held].max(initial=0)
    return NewNodes(
        new, ~unseen, released, {int(runs[place]): int(since[place]) for place in waits}
    )
