"""Which rule fits: bands of degree where degrees vary enough for two of them, NodeEx elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ringfence.jobs.setup.proposal.choice import Choice

MIN_SHARE_OF_BAND = 0.1  # of the sampled nodes that the second largest band must hold


def propose_rule(degrees: Sequence[int]) -> Choice:
    """Return the rule for nodes of these degrees; bands double from one to the next.

    >>> propose_rule([1, 2, 4, 8, 16, 30]).value, propose_rule([5] * 100).value
    ('auto', 'NodeEx')
    """
    bands = Counter(degree.bit_length() for degree in degrees).most_common(2)
    if len(bands) == 2 and bands[1][1] >= MIN_SHARE_OF_BAND * len(degrees):
        low, high = min(degrees), max(degrees)
        return Choice("auto", f"bands of degree: sampled nodes have {low} to {high} relationships")
    if not degrees:
        return Choice("NodeEx", "no sampled node has a relationship: bands need two degrees")
    low, high = min(degrees), max(degrees)
    if low == high:
        return Choice("NodeEx", f"all sampled nodes have {low} relationships: one band of degree")
    return Choice(
        "NodeEx",
        f"sampled nodes have {low} to {high} relationships, but bands double from one to the next "
        f"and {1 - MIN_SHARE_OF_BAND:.0%} or more of the nodes are in one",
    )
