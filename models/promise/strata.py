"""Who is calibrated with whom under a promise of its own for each class or each group.

For classes: nodes of class c alone judge class c. For groups: nodes of the same group alone judge a
node, for all classes. A group is a value of a node property (a region); nodes without the property
are a group of their own. A due node of a group that has no calibration node gets the full set, and
this is said: the promise of its group can't rest on other groups' nodes. Bands of degree, where the
rule has them, are cut inside each class or group that is large enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.bands import band_strata, cut_degrees_of_part
from ringfence.models.conformal.class_strata import class_band_strata
from ringfence.models.conformal.evaluate import NodeDegrees, Promise, rule_strata
from ringfence.models.conformal.strata import Stratum, within_classes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """Groups of calibration [n] and due nodes [m] by a property; None where a node has none."""

    property: str
    calibration: Sequence[str | None]
    due: Sequence[str | None]

    def never_seen(self) -> dict[str | None, int]:
        """Return groups of due nodes that have no calibration node, with their number of nodes."""
        seen = set(self.calibration)
        unseen = [group for group in self.due if group not in seen]
        return {group: unseen.count(group) for group in dict.fromkeys(unseen)}


def class_strata(
    promise: Promise,
    degrees: NodeDegrees,
    classes: Ints,
    alphas: Floats,
    drift: Floats | None = None,
) -> list[Stratum]:
    """Return who judges whom under a promise per class.

    Args:
        promise: its rule is kept inside each class.
        degrees: of calibration and due nodes, and of all.
        classes: true classes of the calibration nodes [n].
        alphas: smallest share of each class that may be missed [classes].
        drift: weights of the calibration nodes [n].
    """
    if promise.rule != "auto":
        return within_classes(rule_strata(promise, degrees, drift), classes, len(alphas))
    strata = class_band_strata(
        degrees.counts, degrees.calibration, degrees.due, classes, alphas, promise.band_nodes
    )
    if drift is None:
        return strata
    return [replace(one, weights=drift[one.calibration]) for one in strata]


def group_strata(
    promise: Promise, degrees: NodeDegrees, groups: NodeGroups, drift: Floats | None = None
) -> list[Stratum]:
    """Return who judges whom under a promise per group, in the order of the groups' names.

    >>> degrees = NodeDegrees(np.ones(3, np.int64), np.ones(2, np.int64), np.array([0, 5]))
    >>> groups = NodeGroups("region", ["north", "south", None], ["south", "west"])
    >>> found = group_strata(Promise((0.1,), "auto"), degrees, groups)
    >>> [(one.band, one.calibration.tolist(), one.due.tolist()) for one in found]
    [('region=south', [1], [0]), ('region=west', [], [1])]
    """
    found = []
    for group in sorted(set(groups.due), key=lambda name: (name is None, name or "")):
        own = np.array([one == group for one in groups.calibration], np.bool_)
        due = np.flatnonzero([one == group for one in groups.due])
        found += _strata_of_group(
            promise, degrees, drift, group_name(groups.property, group), own, due
        )
    return found


def group_name(property_: str, group: str | None) -> str:
    """Return a group as coverage rows and thresholds name it.

    >>> group_name("region", "north"), group_name("region", None)
    ('region=north', 'no region')
    """
    return f"no {property_}" if group is None else f"{property_}={group}"


def group_of_band(property_: str, band: str) -> str | None:
    """Return the group that the name of a stratum speaks of; None for nodes without the property.

    >>> group_of_band("region", "region=north"), group_of_band("region", "2-4 in region=a=b")
    ('north', 'a=b')
    >>> group_of_band("region", "2-4 in no region") is None
    True
    """
    _, found, value = band.partition(f"{property_}=")
    return value if found else None


def _strata_of_group(
    promise: Promise,
    degrees: NodeDegrees,
    drift: Floats | None,
    name: str,
    own: NDArray[np.bool_],
    due: Ints,
) -> list[Stratum]:
    if promise.rule != "auto":
        (everybody,) = rule_strata(promise, degrees, drift)
        inside = own[everybody.calibration]
        weights = None if everybody.weights is None else everybody.weights[inside]
        test: Any = everybody.test_weight
        test = test if np.ndim(test) == 0 else test[due]
        return [Stratum(name, everybody.calibration[inside], due, None, weights, test)]
    members, alpha = np.flatnonzero(own), min(promise.alphas)
    lows = cut_degrees_of_part(degrees.counts, len(members), alpha, promise.band_nodes)
    strata = band_strata(lows, degrees.calibration[members], degrees.due[due], alpha)
    return [
        Stratum(
            f"{one.band} in {name}" if one.band else name,  # degrees first: no value can look so
            members[one.calibration],
            due[one.due],
            None,
            None if drift is None else drift[members[one.calibration]],
        )
        for one in strata
    ]
