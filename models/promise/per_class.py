"""`promise = "class"`: at most alpha of each class is missed; single classes may have their own.

p-values of class c are computed from calibration nodes of class c alone. Bands of degree, where the
rule has them, are cut inside each class that is large enough. A class with too few calibration
nodes is in every set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.strata import Stratum
from ringfence.models.guarantee.law import smallest_n
from ringfence.models.promise.base import MAX_NAMED, NodesToCompare, PromiseKind
from ringfence.models.promise.class_alphas import class_alphas
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.rules.base import Promise

__all__ = ["PER_CLASS", "PerClassPromise", "describe_small_classes"]

MAX_COUNTED_CLASSES = 8  # whose calibration nodes are counted one by one


class PerClassPromise(PromiseKind):
    """Each class is calibrated only by its own nodes, and has levels of its own."""

    name = "class"
    slice = "class"
    per_class = True
    score = "TPS"
    compare_by = "macro_f1"

    def strata(
        self, promise: Promise, nodes: NodesToCompare, options: PromiseOptions
    ) -> tuple[list[Stratum], tuple[str, ...]]:
        """Return the rule's strata inside each class."""
        alphas = class_alphas(nodes.class_names, min(promise.alphas), options.classes)
        strata = promise.rule.class_strata(
            promise, nodes.degrees, nodes.classes, alphas, nodes.drift
        )
        counts = np.bincount(nodes.classes, minlength=len(nodes.class_names))
        return strata, tuple(describe_small_classes(nodes.class_names, counts, alphas))

    def within(self, options: PromiseOptions) -> str:
        """Nodes are compared inside each class."""
        return ", inside each class"

    def describe_strata(self, bands: int, options: PromiseOptions) -> str:
        """Say that only nodes of the same class are compared."""
        parts = f", with {bands} bands of degree that hold due nodes" if bands > 1 else ""
        return f"calibrated among nodes of the same class alone{parts}"

    def share(self, alpha: float, options: PromiseOptions) -> str:
        """Return the share of each class that is missed at most."""
        named = [
            f"{name}: {100 * class_alpha:g} %" for name, class_alpha in options.classes.items()
        ]
        exceptions = f" ({', '.join(named)})" if named else ""
        return f"at most {100 * alpha:g} % of each class are missed{exceptions}"

    def share_of_every_node(self, alpha: float, options: PromiseOptions) -> str:
        """Return the theorem, which holds for the nodes of one class."""
        return f"every node of a class: {self.share(alpha, options)}"

    def guarantee(
        self, alpha: float, calibration: Mapping[str, int], options: PromiseOptions
    ) -> str:
        """Return what the promise rests on: the calibration nodes of each class."""
        named = [f"{name} {count:,}" for name, count in calibration.items()]
        more = len(named) - MAX_COUNTED_CLASSES
        nodes = ", ".join(named[:MAX_COUNTED_CLASSES])
        nodes += f" and {more} more classes" if more > 0 else ""
        total = sum(calibration.values())
        return (
            f"{total:,} calibration nodes ({nodes}): {self.share(alpha, options)}, if new "
            "nodes are exchangeable with them"
        )

    def alpha_of_part(
        self, name: str, alpha: float, options: PromiseOptions, *, seen: bool = True
    ) -> float | None:
        """Return the alpha of a class; one that the model never saw has no promise."""
        return options.classes.get(name, alpha) if seen else None


def describe_small_classes(
    classes: Sequence[str], counts: NDArray[np.int64], alphas: NDArray[np.float64]
) -> list[str]:
    """Say which classes have too few calibration nodes to be left out of any set.

    >>> describe_small_classes(("mule", "normal"), np.array([12, 90]), np.array([0.05, 0.1]))
    ['class mule has 12 calibration nodes, and 19 are needed to miss at most 5 %: it is in every \
set']
    """
    small = [
        f"class {name} has {count} calibration nodes, and {smallest_n(alpha)} are needed to miss "
        f"at most {100 * alpha:g} %: it is in every set"
        for name, count, alpha in zip(classes, counts.tolist(), alphas.tolist(), strict=True)
        if count < smallest_n(alpha)
    ]
    more = [f"so are {len(small) - MAX_NAMED} more classes"] if len(small) > MAX_NAMED else []
    return small[:MAX_NAMED] + more


PER_CLASS = PerClassPromise()
