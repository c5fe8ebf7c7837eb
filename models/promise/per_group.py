"""`promise = "group"`: 1 - alpha is promised to the nodes of each group.

A group is a value of a node property (a region); nodes without the property are a group of their
own. A node's p-values are computed from calibration nodes of its group alone, for all classes. A
due node of a group that has no calibration node gets the full set, and a note says so: the promise
of its group can't rest on other groups' nodes. Bands of degree, where the rule has them, are cut
inside each group that is large enough. Levels are shared: the misses of all nodes move them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.strata import Stratum
from ringfence.models.guarantee.law import smallest_n
from ringfence.models.promise.base import NodesToCompare, PromiseKind, name_some
from ringfence.models.promise.options import GROUP, PromiseOptions
from ringfence.models.rules.base import NodeDegrees, Part, Promise

__all__ = [
    "PER_GROUP",
    "NodeGroups",
    "PerGroupPromise",
    "group_of_band",
    "group_strata",
    "name_group",
]


class PerGroupPromise(PromiseKind):
    """Each group is calibrated only by its own nodes."""

    name = "group"
    slice = "group"
    settings = (GROUP,)

    def strata(
        self, promise: Promise, nodes: NodesToCompare, options: PromiseOptions
    ) -> tuple[list[Stratum], tuple[str, ...]]:
        """Return the rule's strata inside each group."""
        property_ = _property_of(options)
        groups = NodeGroups(property_, *nodes.read_property(property_))
        strata = group_strata(promise, nodes.degrees, groups, nodes.drift)
        return strata, tuple(_describe_small_groups(groups, min(promise.alphas)))

    def within(self, options: PromiseOptions) -> str:
        """Nodes are compared inside each group."""
        return f", inside each value of {options.group}"

    def describe_strata(self, bands: int, options: PromiseOptions) -> str:
        """Say that only nodes of the same group are compared."""
        parts = f", {bands} bands of degree and groups hold due nodes" if bands > 1 else ""
        return f"calibrated among nodes of the same value of {options.group} alone{parts}"

    def share(self, alpha: float, options: PromiseOptions) -> str:
        """Return the share of the nodes of each group that is covered."""
        return (
            f"{100 * (1 - alpha):g} % of the nodes of each {options.group or 'group'} are covered"
        )

    def share_in_the_long_run(self, alpha: float, options: PromiseOptions) -> str:
        """Return the share of all groups together: they share one level."""
        together = f"all values of {options.group or 'the group'} together"
        return f"{together}, {100 * (1 - alpha):g} % are covered"

    def share_of_every_node(self, alpha: float, options: PromiseOptions) -> str:
        """Return the theorem, which holds for the nodes of one group."""
        return f"every node of a group: {self.share(alpha, options)}"

    def alpha_of_part(
        self, name: str, alpha: float, options: PromiseOptions, *, seen: bool = True
    ) -> float | None:
        """Return alpha for a value of the promised property; other groups have no promise."""
        return alpha if name.startswith(f"{_property_of(options)}=") else None

    def name_of_rest(self, options: PromiseOptions) -> str | None:
        """Return the name of the group of nodes without the property."""
        return name_group(_property_of(options), None)

    def describe_band(self, band: str) -> str:
        """Return the group, which the name of a stratum begins or ends with."""
        return band


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


def group_strata(
    promise: Promise,
    degrees: NodeDegrees,
    groups: NodeGroups,
    drift: NDArray[np.float64] | None = None,
) -> list[Stratum]:
    """Return the strata of a promise per group, in the order of the groups' names.

    >>> from ringfence.models.rules.degree_bands import DEGREE_BANDS
    >>> degrees = NodeDegrees(np.ones(3, np.int64), np.ones(2, np.int64), np.array([0, 5]))
    >>> groups = NodeGroups("region", ["north", "south", None], ["south", "west"])
    >>> strata = group_strata(Promise((0.1,), DEGREE_BANDS), degrees, groups)
    >>> [(part.band, part.calibration.tolist(), part.due.tolist()) for part in strata]
    [('region=south', [1], [0]), ('region=west', [], [1])]
    """
    strata = []
    for group in sorted(set(groups.due), key=lambda name: (name is None, name or "")):
        part = Part(
            name_group(groups.property, group),
            np.array([value == group for value in groups.calibration], np.bool_),
            np.flatnonzero([value == group for value in groups.due]),
        )
        strata += promise.rule.part_strata(promise, degrees, part, drift)
    return strata


def name_group(property_: str, group: str | None) -> str:
    """Return a group as coverage rows and thresholds name it.

    >>> name_group("region", "north"), name_group("region", None)
    ('region=north', 'no region')
    """
    return f"no {property_}" if group is None else f"{property_}={group}"


def group_of_band(property_: str, band: str) -> str | None:
    """Return the group in the name of a stratum; None for nodes without the property.

    >>> group_of_band("region", "region=north"), group_of_band("region", "2-4 in region=a=b")
    ('north', 'a=b')
    >>> group_of_band("region", "2-4 in no region") is None
    True
    """
    _, separator, value = band.partition(f"{property_}=")
    return value if separator else None


def _property_of(options: PromiseOptions) -> str:
    if options.group is None:
        raise ValueError("a promise per group without its property; needed: [conformal] group")
    return options.group


def _describe_small_groups(groups: NodeGroups, alpha: float) -> list[str]:
    """Say which due nodes get full sets: their group has too few calibration nodes, or none."""
    needed, notes = smallest_n(alpha), []
    if unseen := groups.never_seen():
        named = _name_groups(groups, list(unseen))
        notes.append(
            f"{sum(unseen.values())} nodes are of a group without any calibration node ({named}): "
            "full sets, until such nodes are labelled and the model is trained anew, or join a "
            "living calibration set"
        )
    counts = {group: groups.calibration.count(group) for group in set(groups.calibration)}
    small = [g for g, count in counts.items() if count < needed and g in set(groups.due)]
    if small:
        nodes = sum(group in small for group in groups.due)
        notes.append(
            f"{nodes} nodes are of a group with fewer than the {needed} calibration nodes that a "
            f"promise of {100 * (1 - alpha):g} % needs ({_name_groups(groups, small)}): full "
            "sets"
        )
    return notes


def _name_groups(groups: NodeGroups, some: Sequence[str | None]) -> str:
    return name_some([name_group(groups.property, group) for group in some])


PER_GROUP = PerGroupPromise()
