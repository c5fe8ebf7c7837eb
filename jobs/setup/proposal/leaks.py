"""Columns and relationships that give the class away: known only because the class is known.

Three signs. A value that is there for nodes with a class and not for nodes without one was set with
the class. A column that tells far more of the class on held-out nodes than the others do may be the
class in other words; in-sample entropy would flag every identifier (tail numbers of planes: 46 % of
the class in-sample, 0 % held out). A relationship whose presence or absence all but determines the
class: new nodes never have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ringfence.models.baselines.held_out import bin_values, told_share

MIN_GROUP = 20  # nodes with a class, and without, below which shares prove nothing
MAX_POINTS_APART = 0.5  # how much oftener a column may be set where the class is known
MIN_ENTROPY_SHARE = 0.05
TIMES_THE_MEDIAN = 5.0
TIMES_THE_NEXT = 2.0  # two columns that tell as little as each other are two good columns
CLEAR_ENTROPY_SHARE = 0.3  # from here on a column is a suspect whatever the others tell
NEIGHBOUR_ENTROPY_SHARE = 0.8  # a neighbour that tells so much is the class in other words
SEED = 0  # of the split in two halves
MIN_NODES_OF_PRESENCE = 10
PURE = 0.95  # share of one class among the nodes with, or without, a relationship


def find_set_with_class(
    values: Sequence[Any], classes: Sequence[str | None], what: str = "set"
) -> str | None:
    """Return a sentence where a value is there mostly for nodes of known class.

    >>> find_set_with_class([1] * 30 + [None] * 30, ["a"] * 30 + [None] * 30)
    'set for 100 % of the nodes with a class and 0 % of those without: it comes with the class'
    """
    known = [value is not None for value, y in zip(values, classes, strict=True) if y is not None]
    open_ = [value is not None for value, y in zip(values, classes, strict=True) if y is None]
    if min(len(known), len(open_)) < MIN_GROUP:
        return None
    with_class, without = sum(known) / len(known), sum(open_) / len(open_)
    if with_class - without < MAX_POINTS_APART:
        return None
    return (
        f"{what} for {100 * with_class:.0f} % of the nodes with a class and {100 * without:.0f} % "
        "of those without: it comes with the class"
    )


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


def find_telling_neighbours(
    who: Sequence[tuple[str, ...] | None],
    columns: Mapping[str, Sequence[Any]],
    classes: Sequence[str | None],
    order: Sequence[Any] | None = None,
) -> str | None:
    """Return a sentence where who a neighbour is, or what stands there, is the class itself.

    who: the neighbours of each node, None where it has none. order: times of the nodes; the later
    half is then held out.
    """
    shares = {"which node it is": entropy_share(who, classes, order)}
    for name, values in columns.items():
        shares[f"its {name}"] = entropy_share(values, classes, order)
    what, share = max(shares.items(), key=lambda item: item[1])
    if share < NEIGHBOUR_ENTROPY_SHARE:
        return None
    held = "later" if order is not None else "held-out"
    return (
        f"{what} tells {100 * share:.0f} % of the class on {held} nodes: the class may stand at "
        "the neighbour, which new nodes lack"
    )


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
    binned = bin_values([values[at] for at in known])
    pairs = list(zip(binned, [classes[at] for at in known], strict=True))
    places = _places(known, order)
    half = len(pairs) // 2
    return told_share([pairs[at] for at in places[:half]], [pairs[at] for at in places[half:]])


def _places(known: list[int], order: Sequence[Any] | None) -> list[int]:
    """Places among the nodes of known class: by time where all have one, else drawn."""
    drawn: list[int] = np.random.default_rng(SEED).permutation(len(known)).tolist()
    if order is None or any(order[at] is None for at in known):
        return drawn
    try:
        return sorted(drawn, key=lambda place: order[known[place]])
    except TypeError:  # times with and without a zone
        return drawn


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
