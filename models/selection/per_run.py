"""`per = "run"`: conformal selection by Benjamini and Hochberg over the nodes of one run.

Jin and Candès, Selection by prediction with conformal p-values, JMLR 24 (2023). The p-value of
"this node is wrong for the list" counts wrong references that look at least as right as it does:

    p_j = (1 + sum of w_i over wrong i with V_i >= V_j) / (1 + sum of all w_i)

and with p_(1) <= p_(2) <= … of the run's m nodes the list takes all up to the largest k with
p_(k) <= share * k / m. If new nodes are exchangeable with the references, the false share of a run
is at most `share` on average over runs; a run with an empty list counts as 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringfence.models.selection.base import SelectionScope
from ringfence.models.selection.references import Floats, Tail
from ringfence.models.selection.references_needed import references_needed

__all__ = ["PER_RUN", "PerRun", "list_p_values"]


def list_p_values(tails: Sequence[Tail], nodes: int) -> Floats:
    """Return the p-value of each new node for "it is wrong for the list" [nodes].

    >>> wrong, every = np.array([2.0, 1, 1, 0]), np.array([3.0, 2, 1, 0])
    >>> tail = Tail(wrong, every, due=np.arange(2), place=np.array([3, 1]))
    >>> list_p_values([tail], nodes=3).tolist()
    [0.25, 0.5, 1.0]
    """
    p = np.ones(nodes)
    for tail in tails:
        p[tail.due] = (1 + tail.wrong[tail.place]) / (1 + tail.every[0])
    return p


class PerRun(SelectionScope):
    """The list of each run has the promise, on average over runs."""

    name = "run"
    is_proved = True
    needs_right = False
    can_hold = "a list of all right nodes can hold"

    def shares(self, tails: Sequence[Tail], nodes: int, may_be_wrong: float) -> Floats:
        """Return the p-values as adjusted by Benjamini and Hochberg: min over k of p_(k) m / k."""
        p = list_p_values(tails, nodes)
        order = np.argsort(p, kind="stable")
        adjusted = p[order] * nodes / np.arange(1, nodes + 1)
        shares = np.empty(nodes)
        shares[order] = np.minimum.accumulate(adjusted[::-1])[::-1]
        return np.minimum(shares, 1.0)

    def references_needed(self, wrong_share: float, may_be_wrong: float) -> int:
        """Return how many wrong references a list of all right nodes of a run needs."""
        return references_needed(wrong_share, may_be_wrong)

    def sentence(self, share: float, wrong: str) -> str:
        """Say that the promise is an average over runs, in which empty lists count."""
        return (
            f"on average over runs, at most {100 * share:g} % of a run's listed nodes are {wrong}; "
            "a run with an empty list counts as 0 %"
        )


PER_RUN = PerRun()
