"""What a rule is: which calibration nodes judge which due nodes, and how much each of them counts.

A rule stands for an assumption about how a graph grows: nodes arrive in exchangeable order, or
edges do, or either (`assumes`). From it follow the strata of a run, and what a project may combine
with the rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.bands import EXPECTED_NODES
from ringfence.models.conformal.strata import Stratum, within_classes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NodeDegrees:
    """Degrees on one graph: of calibration [n] and due nodes [m]; nodes of each degree.

    counts: how many nodes of the whole graph have degree 0, 1, 2, …; only degree bands use it.
    """

    calibration: Ints
    due: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised and by which rule.

    alphas: shares that may be missed, the first one first · levels: what p-values are compared
    with, by alpha and class [alphas, classes]; None where it is alpha itself (single classes can
    have an alpha of their own, and levels can adapt) · exact_test_weight: EdgeEx with the due
    node's own weight · band_nodes: over the smallest alpha, calibration nodes that a band of
    degrees is expected to hold · shift: in place of bands, weigh calibration nodes by how much more
    often due nodes have their degree.
    """

    alphas: tuple[float, ...]
    rule: Rule
    levels: Floats | None = None
    exact_test_weight: bool = False
    band_nodes: float = EXPECTED_NODES
    shift: bool = False

    def level_table(self, classes: int) -> Floats:
        """Return the levels by alpha and class [alphas, classes]."""
        if self.levels is not None:
            return self.levels
        return np.repeat(np.array(self.alphas)[:, None], classes, axis=1)


class Rule(ABC):
    """One rule as the registry offers it.

    name: in the configuration and on record · assumes: what arrives in exchangeable order, None
    where it does not matter · within: how nodes are compared, as a clause of "calibrated …" ·
    uses_bands: nodes are compared within bands of degree, for which the degrees of all nodes are
    counted · needs_neighbours: a node without a neighbour is not evaluated yet · weighs_nodes:
    calibration nodes have weights of their own, so that the law of one run is not exact ·
    allows_recent_labels: nodes that become known later may calibrate · allows_shift_weights: its
    strata may be replaced by weights for another distribution of degrees · monitored_by_degree:
    the exchangeability monitor compares nodes of like degree.
    """

    name: ClassVar[str]
    within: ClassVar[str]
    assumes: ClassVar[Literal["node", "edge"] | None] = None
    uses_bands: ClassVar[bool] = False
    needs_neighbours: ClassVar[bool] = False
    weighs_nodes: ClassVar[bool] = False
    allows_recent_labels: ClassVar[bool] = True
    allows_shift_weights: ClassVar[bool] = True
    monitored_by_degree: ClassVar[bool] = True

    @abstractmethod
    def strata(
        self, promise: Promise, degrees: NodeDegrees, drift: Floats | None = None
    ) -> list[Stratum]:
        """Return the strata; `drift` are weights of the calibration nodes by age [n]."""

    def class_strata(
        self,
        promise: Promise,
        degrees: NodeDegrees,
        classes: Ints,
        alphas: Floats,
        drift: Floats | None = None,
    ) -> list[Stratum]:
        """Return the strata inside each class.

        Args:
            promise: its levels and the size of bands.
            degrees: of calibration and due nodes, and of all.
            classes: true classes of the calibration nodes [n].
            alphas: smallest share of each class that may be missed [classes].
            drift: weights of the calibration nodes [n].
        """
        return within_classes(self.strata(promise, degrees, drift), classes, len(alphas))

    def part_strata(
        self,
        promise: Promise,
        degrees: NodeDegrees,
        part: Part,
        drift: Floats | None = None,
    ) -> list[Stratum]:
        """Return the strata inside a part of the nodes."""
        return restrict_strata(self.strata(promise, degrees, drift), part)

    def calibration_weights(
        self, degrees: NodeDegrees, drift: Floats | None
    ) -> tuple[Floats | None, int]:
        """Return the weights of the nodes that calibrate (None if all are equal), and how many.

        They say what the calibration nodes are worth in all, whatever the strata are.
        """
        return drift, len(degrees.calibration)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the nodes, such as a group, that is calibrated for itself.

    name: of its strata · calibration: which calibration nodes are in it [n] · due: places of its
    due nodes.
    """

    name: str
    calibration: NDArray[np.bool_]
    due: Ints

    def name_of_band(self, band: str) -> str:
        """Return the name of one of its strata: degrees first, so that no part can look like it."""
        return f"{band} in {self.name}" if band else self.name


def weigh_strata(strata: Sequence[Stratum], drift: Floats | None) -> list[Stratum]:
    """Return strata whose calibration nodes have weights by age, where there are any."""
    if drift is None:
        return list(strata)
    return [replace(stratum, weights=drift[stratum.calibration]) for stratum in strata]


def restrict_strata(strata: Sequence[Stratum], part: Part) -> list[Stratum]:
    """Return the strata inside a part; those that hold none of its due nodes are left out.

    >>> everybody = Stratum("", np.arange(3), np.arange(2))
    >>> north = Part("region=north", np.array([True, False, True]), np.array([1]))
    >>> [(one.band, one.calibration, one.due) for one in restrict_strata([everybody], north)]
    [('region=north', array([0, 2]), array([1]))]
    """
    restricted = []
    for stratum in strata:
        known, due = part.calibration[stratum.calibration], np.isin(stratum.due, part.due)
        weights = None if stratum.weights is None else stratum.weights[known]
        test: Any = stratum.test_weight
        test = test if np.ndim(test) == 0 else test[due]
        if due.any():
            restricted.append(
                Stratum(
                    part.name_of_band(stratum.band),
                    stratum.calibration[known],
                    stratum.due[due],
                    None,
                    weights,
                    test,
                )
            )
    return restricted
