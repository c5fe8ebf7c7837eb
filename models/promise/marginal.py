"""`promise = "marginal"`: 1 - alpha is promised over all nodes together."""

from __future__ import annotations

from ringfence.models.conformal.evaluate import rule_strata
from ringfence.models.conformal.strata import Stratum
from ringfence.models.promise.base import NodesToCompare, PromiseKind
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.rules.base import Promise

__all__ = ["MARGINAL", "MarginalPromise"]


class MarginalPromise(PromiseKind):
    """The strata are those of the rule."""

    name = "marginal"
    divides_nodes = False

    def strata(
        self, promise: Promise, nodes: NodesToCompare, options: PromiseOptions
    ) -> tuple[list[Stratum], tuple[str, ...]]:
        """Return the strata of the rule."""
        return rule_strata(promise, nodes.degrees, nodes.drift), ()

    def within(self, options: PromiseOptions) -> str:
        """All nodes are compared."""
        return ""

    def share(self, alpha: float, options: PromiseOptions) -> str:
        """Return the share of all nodes that is covered."""
        return f"{100 * (1 - alpha):g} % are covered"

    def share_of_every_node(self, alpha: float, options: PromiseOptions) -> str:
        """Return the paper's theorem, which holds for every node."""
        share = f"{100 * (1 - alpha):g} %"
        return f"every node: its set holds its class with probability at least {share}"


MARGINAL = MarginalPromise()
