"""Columns and relationships that give the class away: known only because the class is known.

Three signs. A value that is there for nodes with a class and not for nodes without one was set with
the class. A column that tells far more of the class on held-out nodes than the others do may be the
class in other words; in-sample entropy would flag every identifier (tail numbers of planes: 46 % of
the class in-sample, 0 % held out). A relationship whose presence or absence all but names a class:
newcomers never have it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

MIN_GROUP = 20  # nodes with a class, and without, below which shares prove nothing
MAX_POINTS_APART = 0.5  # how much oftener a column may be set where the class is known
MIN_ENTROPY_SHARE = 0.05
TIMES_THE_MEDIAN = 5.0
TIMES_THE_NEXT = 2.0  # two columns that tell as little as each other are two good columns
CLEAR_ENTROPY_SHARE = 0.3  # from here on a column is a suspect whatever the others tell
SEED = 0  # of the split in two halves
BINS = 16  # that numbers are sorted into
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


def find_telling(
    columns: Mapping[str, Sequence[Any]], classes: Sequence[str | None]
) -> dict[str, str]:
    """Return the columns that tell far more of the class than the others, with a sentence each."""
    shares = {name: entropy_share(values, classes) for name, values in columns.items()}
    telling = {}
    for name, share in shares.items():
        others = [one for other, one in shares.items() if other != name]
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


def entropy_share(values: Sequence[Any], classes: Sequence[str | None]) -> float:
    """Return the share of the class's entropy that a column tells on held-out nodes.

    The nodes of known class are split in two halves by a fixed draw; P(class | value) is counted on
    one and scored on the other.

    >>> entropy_share(["a", "a", "b", "b"] * 50, ["x", "x", "y", "y"] * 50) > 0.8
    True
    """
    pairs = [(one, y) for one, y in zip(values, classes, strict=True) if y is not None]
    if len(pairs) < 2 * MIN_GROUP:
        return 0.0
    binned = _binned([one for one, _ in pairs])
    order = np.random.default_rng(SEED).permutation(len(pairs)).tolist()
    seen, held = order[: len(pairs) // 2], order[len(pairs) // 2 :]
    truth = [y for _, y in pairs]
    prior = Counter(truth[at] for at in seen)
    given: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for at in seen:
        given[binned[at]][truth[at]] += 1
    base = tell = 0.0
    for at in held:
        chance = (prior[truth[at]] + 1) / (len(seen) + len(prior) + 1)
        found = given.get(binned[at], Counter())
        weight = len(prior)  # as many imagined nodes of the common shares as there are classes
        told = (found[truth[at]] + weight * chance) / (sum(found.values()) + weight)
        base -= math.log(chance)
        tell -= math.log(told)
    return 1.0 - tell / base if base > 0 else 0.0


def find_telling_presence(has: Sequence[bool], classes: Sequence[str | None]) -> str | None:
    """Return a sentence where having, or lacking, a relationship all but names one class."""
    known = [(flag, y) for flag, y in zip(has, classes, strict=True) if y is not None]
    if len(known) < 2 * MIN_GROUP:
        return None
    common = Counter(y for _, y in known)
    for flag, word in ((True, "with"), (False, "without")):
        inside = Counter(y for one, y in known if one is flag)
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


def _binned(values: Sequence[Any]) -> list[Hashable]:
    """Values as a few kinds: numbers by quantile, the rest by their text."""
    numbers = [one for one in values if isinstance(one, int | float) and math.isfinite(one)]
    if len(set(numbers)) > BINS and len(numbers) > len(values) / 2:
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, BINS + 1)[1:-1]))
        return [_bin(one, edges) for one in values]
    return [None if one is None else repr(one) for one in values]


def _bin(value: Any, edges: np.ndarray) -> Hashable:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(np.searchsorted(edges, value))
