"""What a promise is: for which nodes 1 - alpha holds, how it is calibrated, how it is described.

A promise is about all nodes together, the nodes of each class, or the nodes of each part by some
other trait. It decides the strata of a run (the calibration nodes that a due node is compared
with), the levels, the coverage rows that are compared with it, and its sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.strata import Stratum
from ringfence.models.guarantee.law import guarantee
from ringfence.models.promise.options import GROUP, PromiseOptions
from ringfence.models.rules.base import NodeDegrees, Promise

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
PropertyValues = tuple[Sequence[str | None], Sequence[str | None]]

MAX_NAMED = 5  # groups or classes that a note names


@dataclass(frozen=True, slots=True)
class NodesToCompare:
    """Calibration and due nodes of a run, as a promise divides them.

    class_names: of the model, in the order of its outputs · classes: true classes of the
    calibration nodes [n] · degrees: of both, and of all nodes · drift: weights of the calibration
    nodes by age [n], where there are any · read_property: values of a node property, of the
    calibration [n] and of the due nodes [m]; None where a node has none.
    """

    class_names: tuple[str, ...]
    classes: Ints
    degrees: NodeDegrees
    drift: Floats | None
    read_property: Callable[[str], PropertyValues]


class PromiseKind(ABC):
    """One promise as the registry offers it.

    name: in the configuration and on record · slice: the coverage rows that are compared with it,
    one per class or group; None if it is about all nodes together, or about parts that no row
    counts · per_class: each class is calibrated by its own nodes alone: it may have an alpha of its
    own, has a level of its own, and rare classes give more of their nodes to calibration ·
    settings: those of `[conformal]` that only such promises take · needs_group: whether one of them
    is `group`, the property by which nodes are divided · divides_nodes: it is about parts of the
    nodes, each with strata of its own · score: the score of a new model with bands of degree ·
    compare_by: the metric that versions are compared by.
    """

    name: ClassVar[str]
    slice: ClassVar[Literal["class", "group"] | None] = None
    per_class: ClassVar[bool] = False
    settings: ClassVar[tuple[str, ...]] = ()
    divides_nodes: ClassVar[bool] = True
    score: ClassVar[str] = "DAPS"
    compare_by: ClassVar[Literal["accuracy", "macro_f1"]] = "accuracy"

    @property
    def needs_group(self) -> bool:
        """Whether nodes are divided by a property that the configuration names."""
        return GROUP in self.settings

    @abstractmethod
    def strata(
        self, promise: Promise, nodes: NodesToCompare, options: PromiseOptions
    ) -> tuple[list[Stratum], tuple[str, ...]]:
        """Return the strata, and notes on parts with too few calibration nodes."""

    @abstractmethod
    def within(self, options: PromiseOptions) -> str:
        """Return within what nodes are compared, as ", inside each class"; empty for all."""

    def describe_strata(self, bands: int, options: PromiseOptions) -> str:
        """Say how nodes are compared if due nodes are in so many bands or parts."""
        return f"calibrated{self.within(options)}: {bands} parts hold due nodes"

    @abstractmethod
    def share(self, alpha: float, options: PromiseOptions) -> str:
        """Return what is promised: "90 % are covered"."""

    def share_in_the_long_run(self, alpha: float, options: PromiseOptions) -> str:
        """Return what an adaptive level promises of the nodes whose class becomes known."""
        return self.share(alpha, options)

    def share_of_every_node(self, alpha: float, options: PromiseOptions) -> str:
        """Return what frozen calibration at a fixed level promises, and for which nodes."""
        return f"every node: {self.share(alpha, options)}"

    def guarantee(
        self, alpha: float, calibration: Mapping[str, int], options: PromiseOptions
    ) -> str:
        """Return what a new model promises; `calibration` counts its nodes of each class."""
        return guarantee(sum(calibration.values()), alpha).sentence

    def alpha_of_part(
        self, name: str, alpha: float, options: PromiseOptions, *, seen: bool = True
    ) -> float | None:
        """Return the share that may be missed of a class or group of `slice`; None: no promise.

        `seen` says whether the model knows the class.
        """
        return None

    def name_of_rest(self, options: PromiseOptions) -> str | None:
        """Return the name under which nodes of no part are calibrated; None where they are not."""
        return None

    def describe_band(self, band: str) -> str:
        """Return which nodes the name of a stratum stands for."""
        return f"degree {band}"


def name_some(names: Sequence[str]) -> str:
    """Return the first names of a sorted list, and how many more there are.

    >>> name_some(["b", "a"]), name_some(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(sorted(names)[:MAX_NAMED]) + more
