"""Library only, until jobs use it.

Who is calibrated with whom under a promise for groups: nodes of the same group alone.

A group is a value of a node property (a region). Nodes without the property are a group of their
own. A due node of a group that has no calibration node gets the full set, and this is said: the
promise of its group can't rest on other groups' nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GroupStrata:
    """Strata of calibration [n] and due nodes [m]; `never_seen` groups have no calibration node."""

    calibration: Ints
    due: Ints
    groups: tuple[str | None, ...]
    never_seen: tuple[str | None, ...]


def group_strata(calibration: Sequence[str | None], due: Sequence[str | None]) -> GroupStrata:
    """Return strata by group; None is the group of nodes that lack the property.

    >>> found = group_strata(["north", "south", None], ["south", "west"])
    >>> found.calibration.tolist(), found.due.tolist(), found.never_seen
    ([1, 2, 0], [2, 3], ('west',))
    """
    groups = sorted({*calibration, *due}, key=lambda name: (name is not None, name or ""))
    number = {name: i for i, name in enumerate(groups)}
    seen = set(calibration)
    return GroupStrata(
        np.array([number[name] for name in calibration], np.int64),
        np.array([number[name] for name in due], np.int64),
        tuple(groups),
        tuple(name for name in groups if name not in seen),
    )
