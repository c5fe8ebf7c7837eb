"""Runs of which classes are known because their nodes were listed or worked on.

Who works through a list finds out the classes of suspects. Such classes are *selected*: calibration
nodes, levels and lists that rest on them speak of suspects alone. Each run is asked whether the
nodes that nobody was sent to are known about as often as the others; where they clearly are not,
the run is *held*, however long it waits. Its audit sample, which was drawn before anyone saw a
list, is no such choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.calibration.cohort import NEARLY_ALL

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


HELD_SHARE, HELD_P = 0.5, 0.001
"""A run is held where nodes that nobody was sent to are known less than half as often as those on
lists, and a fair draw of the known nodes has so few of them in less than .1 % of draws."""


@dataclass(frozen=True, slots=True)
class Selection:
    """How many nodes runs evaluated and put on lists, and how many are known; all [runs].

    `selected` are known nodes that were listed, or of which a person had said what came out before
    the class was noticed. The audit sample is left out of all of them: whoever asks for it makes
    no run whole.
    """

    evaluated: Ints
    listed: Ints
    known: Ints
    selected: Ints


def held_runs(selection: Selection) -> NDArray[np.bool_]:
    """Return the runs whose known classes are clearly a choice of listed nodes [runs].

    Runs that are known nearly whole are none. The others are asked one by one, and together, since
    a few known nodes of one run tell nothing.

    >>> runs = np.array([100, 100, 100])
    >>> held_runs(Selection(runs, runs // 10, np.array([9, 60, 99]), np.array([9, 6, 10]))).tolist()
    [True, False, False]
    """
    nodes = selection.evaluated
    sent_to = np.clip(selection.listed, selection.selected, nodes)
    partly = selection.known < NEARLY_ALL * nodes
    asked = partly & (selection.selected > 0) & (sent_to < nodes)
    others, left = selection.known - selection.selected, nodes - sent_to
    few = asked & (others * sent_to < HELD_SHARE * selection.selected * left)
    if not few.any():
        return few
    usual = selection.known * left / np.maximum(nodes, 1)
    alone = _is_rare(others, selection.known, usual)
    together = _is_rare(others[asked].sum(), selection.known[asked].sum(), usual[asked].sum())
    return few & (alone | together)


def _is_rare(others: Ints, known: Ints, usual: Floats) -> NDArray[np.bool_]:
    """Whether a fair draw of so many nodes seldom has so few that nobody was sent to."""
    from scipy.special import bdtr

    share = np.clip(usual / np.maximum(known, 1), 0.0, 1.0)
    return np.asarray(bdtr(np.asarray(others, float), known, share) < HELD_P)
