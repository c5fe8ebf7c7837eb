"""Columns and relationships that give the class away: known only because the class is known.

Three signs. A value that is there for nodes with a class and not for nodes without one was set with
the class. A column that tells far more of the class on held-out nodes than the others do may be the
class in other words; in-sample entropy would flag every identifier (tail numbers of planes: 46 % of
the class in-sample, 0 % held out). A relationship whose presence or absence all but determines the
class: new nodes never have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ringfence.models.baselines.held_out import bin_values, told_share

MIN_GROUP = 20  # nodes with a class, and without, below which shares prove nothing
MAX_POINTS_APART = 0.5  # how much oftener a column may be set where the class is known
MIN_ENTROPY_SHARE = 0.05
TIMES_THE_MEDIAN = 5.0
TIMES_THE_NEXT = 2.0  # two columns that tell as little as each other are two good columns
CLEAR_ENTROPY_SHARE = 0.3  # from here on a column is a suspect whatever the others tell
SEED = 0  # of the split in two halves
MIN_NODES_OF_PRESENCE = 10
PURE = 0.95  # share of one class among the nodes with, or without, a relationship


def find_set_with_class(
    values: Sequence[Any],
    classes: Sequence[str | None],
    what: str = "set",
    ages: Sequence[tuple[list[int], list[int]]] | None = None,
) -> str | None:
    """Return a sentence where a value is there mostly for nodes of known class.

    ages: nodes of the same age, those with a class and those without; only they are compared then.

    >>> find_set_with_class([1] * 30 + [None] * 30, ["a"] * 30 + [None] * 30)
    'set for 100 % of the nodes with a class and 0 % of those without: it comes with the class'
    """
    pairs = ages or [
        (
            [at for at, y in enumerate(classes) if y is not None],
            [at for at, y in enumerate(classes) if y is None],
        )
    ]
    known, open_ = (sum(map(len, side)) for side in zip(*pairs, strict=True))
    if min(known, open_) < MIN_GROUP:
        return None
    shares = [[_share_set(values, side) for side in pair] for pair in pairs]
    with_class, without = (
        sum(share[side] * len(pair[1]) for share, pair in zip(shares, pairs, strict=True)) / open_
        for side in (0, 1)
    )
    if with_class - without < MAX_POINTS_APART:
        return None
    of_age = " of the same age" if ages else ""
    return (
        f"{what} for {100 * with_class:.0f} % of the nodes with a class and {100 * without:.0f} % "
        f"of those without{of_age}: it comes with the class"
    )


def _share_set(values: Sequence[Any], places: Sequence[int]) -> float:
    return sum(values[at] is not None for at in places) / len(places) if places else 0.0


def find_leaking_columns(
    columns: Mapping[str, Sequence[Any]], classes: Sequence[str | None]
) -> dict[str, str]:
    """Return the columns of a label that give the class away, with a sentence each.

    `init` and `doctor` ask this of all usable properties of the label, chosen or not, so that what
    the one proposes the other does not refuse.
    """
    leaks = {
        name: said
        for name, values in columns.items()
        if (said := find_set_with_class(values, classes)) is not None
    }
    rest = {name: values for name, values in columns.items() if name not in leaks}
    return leaks | find_telling(rest, classes)


def find_telling(
    columns: Mapping[str, Sequence[Any]], classes: Sequence[str | None]
) -> dict[str, str]:
    """Return the columns that tell far more of the class than the others, with a sentence each."""
    shares = {name: entropy_share(values, classes) for name, values in columns.items()}
    telling = {}
    for name, share in shares.items():
        others = [share for other, share in shares.items() if other != name]
        median = float(np.median(others)) if others else 0.0
        stands_out = share >= TIMES_THE_NEXT * max(others, default=share)
        if (
            others
            and share >= MIN_ENTROPY_SHARE
            and share >= TIMES_THE_MEDIAN * max(median, 0.0)
            and (stands_out or share >= CLEAR_ENTROPY_SHARE)
        ):
            telling[name] = (
                f"tells {100 * share:.0f} % of the class on held-out nodes, the others "
                f"{100 * max(median, 0.0):.1f} % (median): it may be the class in other words"
            )
    return telling


def entropy_share(
    values: Sequence[Any], classes: Sequence[str | None], order: Sequence[Any] | None = None
) -> float:
    """Return the share of the class's entropy that a column tells on held-out nodes.

    The nodes of known class are split in two halves, by their place in `order` or by a fixed draw;
    P(class | value) is counted on the first and scored on the second.

    >>> entropy_share(["a", "a", "b", "b"] * 50, ["x", "x", "y", "y"] * 50) > 0.8
    True
    """
    known = [at for at, y in enumerate(classes) if y is not None]
    if len(known) < 2 * MIN_GROUP:
        return 0.0
    binned = dict(zip(known, bin_values([values[at] for at in known]), strict=True))
    return told_by(binned, classes, *halve_by_time(known, order))


def told_by(
    values: Mapping[int, Hashable],
    classes: Sequence[str | None],
    seen: Sequence[int],
    held: Sequence[int],
) -> float:
    """Return the share of the class's entropy that values by node, learnt on `seen`, tell."""
    pairs = [[(values[at], classes[at]) for at in half] for half in (seen, held)]
    return told_share(*pairs)


def halve_by_time(known: list[int], order: Sequence[Any] | None) -> tuple[list[int], list[int]]:
    """Return nodes in two halves: by time where all have one, else drawn."""
    drawn = np.random.default_rng(SEED).permutation(len(known)).tolist()
    nodes = [known[place] for place in drawn]
    if order is not None and all(order[at] is not None for at in known):
        with suppress(TypeError):  # times with and without a zone
            nodes = sorted(nodes, key=lambda at: order[at])
    return nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]


def find_telling_presence(has: Sequence[bool], classes: Sequence[str | None]) -> str | None:
    """Return a sentence if having, or lacking, a relationship all but determines the class."""
    known = [(flag, y) for flag, y in zip(has, classes, strict=True) if y is not None]
    if len(known) < 2 * MIN_GROUP:
        return None
    common = Counter(y for _, y in known)
    for flag, word in ((True, "with"), (False, "without")):
        inside = Counter(y for has_it, y in known if has_it is flag)
        n = sum(inside.values())
        if n < MIN_NODES_OF_PRESENCE or n > len(known) / 2:
            continue
        class_, count = inside.most_common(1)[0]
        if count / n >= PURE and common[class_] / len(known) <= 0.5:
            return (
                f"{100 * count / n:.0f} % of the {n} sampled nodes {word} one are {class_}, of all "
                f"nodes {100 * common[class_] / len(known):.0f} %"
            )
    return None
