"""Which promise fits: for each class where classes are uneven, for all nodes together elsewhere.

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
