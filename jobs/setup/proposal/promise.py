"""Which promise and which rule fit a graph, as `ringfence init` proposes them.

A promise for each class where classes are uneven, for all nodes together elsewhere; bands of degree
where degrees vary enough for two of them, NodeEx elsewhere.

The promise for all nodes is kept by a set that misses a small class every time: it may miss a
share alpha of all nodes, and they may all be of that class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ringfence.jobs.setup.proposal.choice import Choice

MARGINAL = Choice("marginal", "for all nodes together")
ALPHA = 0.1  # of the file that `init` writes
UNEVEN = 3.0  # nodes of the largest class per one of the smallest
MIN_NODES_OF_CLASS = 100
"""Labelled nodes of the smallest class, about a quarter of which would calibrate it."""

MIN_SHARE_OF_BAND = 0.1  # of the sampled nodes that the second largest band must hold


def propose_promise(classes: Sequence[str | None], count: int) -> Choice:
    """Return `class` or `marginal`, with what the marginal promise would do to the smallest class.

    Args:
        classes: those of the sampled nodes, None for unknown.
        count: how many nodes there are in all.

    >>> propose_promise(["a"] * 900 + ["b"] * 100, 10_000).value
    'class'
    >>> propose_promise(["a"] * 90 + ["b"] * 100, 190).value
    'marginal'
    """
    sizes = Counter(class_ for class_ in classes if class_ is not None)
    if len(sizes) < 2:
        return MARGINAL
    (_, most), (name, fewest) = sizes.most_common(1)[0], sizes.most_common()[-1]
    share = fewest / sum(sizes.values())
    known = round(fewest * count / max(len(classes), 1))
    if most < UNEVEN * fewest:
        return Choice("marginal", f"classes are about even: the smallest, {name}, has {share:.0%}")
    worst = max(0.0, 1 - ALPHA / share)
    words = (
        f"{name} has {share:.1%} of the nodes: a promise for all together would be kept with "
        f"{worst:.0%} of them covered"
    )
    if known < MIN_NODES_OF_CLASS:
        return Choice(
            "marginal",
            f'{words}; promise = "class" needs about {MIN_NODES_OF_CLASS} labelled nodes of it, '
            f"there are {known}",
        )
    return Choice("class", words)


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
