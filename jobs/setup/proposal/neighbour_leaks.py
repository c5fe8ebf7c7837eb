"""Relationships that give the class away: by who is there, by what stands there, by how many.

Nodes are compared in their order of time where there is one: the later half of those with a class
is held out, and nodes with and without a class are compared at the same age, for young nodes have
few relationships for no other reason than that they are young.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.sample import (
    LabelSample,
    SampledNeighbours,
    SampledRelation,
    sample_neighbours,
)
from ringfence.jobs.setup.proposal.arrival import propose_arrival
from ringfence.jobs.setup.proposal.leaks import (
    MIN_GROUP,
    find_set_with_class,
    find_telling_presence,
    halve_by_time,
    told_by,
)

RelationKey = tuple[str, bool, str]
"""Type, whether it leaves the label, and the label at its other end."""

Items = Sequence[tuple[str, ...] | None]
"""What a node's neighbours have of one thing, a few texts; None for a node without one."""

MIN_NODES_OF_NEIGHBOURS = 40  # of known class
NEIGHBOUR_ENTROPY_SHARE = 0.8  # a neighbour that tells so much is the class in other words
MIN_NODES_OF_ITEM = 2  # that have it in the half that is learnt from
AGE_BINS = 10
MORE_OFTEN = 0.9  # how often a node with a class has more than a node without: a half is chance


def find_time(sample: LabelSample, created_at: str | None, now_seconds: int) -> str | None:
    """Return the property that orders the nodes: the creation time, or a business date.

    `init` and `doctor` both ask this.
    """
    if created_at:
        return created_at
    arrival = propose_arrival(list(sample.properties.values()), now_seconds)
    return arrival.created_at or next(iter(arrival.business_dates), None)


def find_neighbour_leaks(
    graph: Graph, sample: LabelSample, class_property: str, time_property: str | None
) -> dict[RelationKey, str]:
    """Return the relationship types of a sample at whose other end the class stands, and why."""
    classes = classes_of(sample, class_property)
    if sum(value is not None for value in classes) < MIN_NODES_OF_NEIGHBOURS:
        return {}
    order = order_of(sample, time_property)
    leaks: dict[RelationKey, str] = {}
    for near in sample_neighbours(graph, sample):
        told = find_telling_neighbours(near.who, _columns(near, sample, class_property), classes,
                                       order)  # fmt: skip
        if told is not None:
            leaks[near.type, near.outgoing, near.label] = told
    return leaks


def _columns(near: SampledNeighbours, sample: LabelSample, class_property: str) -> dict[str, Items]:
    """What stands at neighbours, without the class of nodes of the same label."""
    return {
        name: values
        for name, values in near.columns.items()
        if not (near.label == sample.name and name == class_property)
    }


def classes_of(sample: LabelSample, name: str) -> list[str | None]:
    """Return the classes of the sampled nodes."""
    property_ = sample.properties.get(name)
    if property_ is None:
        return [None] * sample.sampled
    return [None if value is None else str(value) for value in property_.values]


def order_of(sample: LabelSample, time_property: str | None) -> Sequence[Any] | None:
    """Return the times of the sampled nodes, where there is such a property."""
    times = sample.properties.get(time_property or "")
    return None if times is None else times.values


def find_telling_neighbours(
    who: Items,
    columns: Mapping[str, Items],
    classes: Sequence[str | None],
    order: Sequence[Any] | None = None,
) -> str | None:
    """Return a sentence where who a neighbour is, or what stands there, is the class itself.

    who: the neighbours of each node. columns: what stands at all of them, by property. order: times
    of the nodes; the later half is then held out.

    >>> ships = [("a", "x"), ("x", "b")] * 30
    >>> find_telling_neighbours(ships, {}, ["fast", "slow"] * 30).split(" on ")[0]
    'which node it is tells 91 % of the class'
    """
    told = {"which node it is": items_share(who, classes, order)}
    told |= {f"its {name}": items_share(items, classes, order) for name, items in columns.items()}
    what, share = max(told.items(), key=lambda item: item[1])
    if share < NEIGHBOUR_ENTROPY_SHARE:
        return None
    held = "later" if order is not None else "held-out"
    return (
        f"{what} tells {100 * share:.0f} % of the class on {held} nodes: the class may stand at "
        "the neighbour, which new nodes lack"
    )


def items_share(
    items: Items, classes: Sequence[str | None], order: Sequence[Any] | None = None
) -> float:
    """Return the share of the class's entropy that a node's items tell on held-out nodes.

    Asked of all items of a node together, and of the one among them that told most of the class in
    the half that is learnt from: the class may stand at one of many neighbours.
    """
    known = [at for at, y in enumerate(classes) if y is not None]
    if len(known) < 2 * MIN_GROUP:
        return 0.0
    seen, held = halve_by_time(known, order)
    whole = {at: items[at] for at in known}
    most = _most_telling(items, classes, seen, known)
    return max(told_by(values, classes, seen, held) for values in (whole, most))


def _most_telling(
    items: Items, classes: Sequence[str | None], seen: list[int], known: list[int]
) -> dict[int, str | None]:
    """By node the item whose nodes in the half that is seen are most of one class."""
    met: dict[str, Counter[str | None]] = defaultdict(Counter)
    for at in seen:
        for item in items[at] or ():
            met[item][classes[at]] += 1
    kinds = len({classes[at] for at in seen})
    purity = {
        item: max(counts.values()) / (counts.total() + kinds)
        for item, counts in met.items()
        if counts.total() >= MIN_NODES_OF_ITEM
    }
    return {
        at: max(
            (item for item in items[at] or () if item in purity),
            key=lambda item: (purity[item], item),
            default=None,
        )
        for at in known
    }


def find_presence_leak(
    relation: SampledRelation, classes: Sequence[str | None], order: Sequence[Any] | None = None
) -> str | None:
    """Return why having a relationship, or having many, gives the class away; None if it doesn't.

    order: times of the nodes, where there are some.
    """
    flags = [True if flag else None for flag in relation.has]
    numbers = relation.numbers
    ages = None if order is None else find_same_ages(classes, order)
    checks: tuple[Callable[[], str | None], ...] = (
        lambda: find_set_with_class(flags, classes, "there", ages),
        lambda: find_more_with_class(numbers, ages) if numbers and ages else None,
        lambda: find_telling_presence(relation.has, classes),
    )
    return next((said for check in checks if (said := check())), None)


def find_same_ages(
    classes: Sequence[str | None], order: Sequence[Any]
) -> list[tuple[list[int], list[int]]] | None:
    """Return nodes of the same age, those with a class and those without; None where there are few.

    Ages are tenths of the nodes without a class, by time.

    >>> [(len(a), len(b)) for a, b in find_same_ages(["x", None] * 30, range(60))][:2]
    [(3, 3), (3, 3)]
    """
    places = [at for at, time in enumerate(order) if time is not None]
    due = [at for at in places if classes[at] is None]
    if len(due) < MIN_GROUP:
        return None
    try:
        times = sorted(order[at] for at in due)
        edges = [times[len(times) * k // AGE_BINS] for k in range(1, AGE_BINS)]
        pairs: list[tuple[list[int], list[int]]] = [([], []) for _ in range(AGE_BINS)]
        for at in places:
            if times[0] <= order[at] <= times[-1]:
                pairs[bisect_right(edges, order[at])][classes[at] is None].append(at)
    except TypeError:  # times with and without a zone
        return None
    pairs = [pair for pair in pairs if all(pair)]
    known, open_ = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
    return pairs if min(known, open_) >= MIN_GROUP else None


def find_more_with_class(
    numbers: Sequence[int], ages: Sequence[tuple[list[int], list[int]]]
) -> str | None:
    """Return a sentence where nodes with a class have far more relationships than those without.

    Asked of nodes of the same age alone: older ones have more of them, and a class more often.

    >>> find_more_with_class([9] * 30 + [1] * 30, [([*range(30)], [*range(30, 60)])]).split(":")[0]
    'nodes with a class have more of them than those without of the same age in 100 % of pairs'
    """
    more, weight = 0.0, 0
    for known, open_ in ages:
        others = sorted(numbers[at] for at in open_)
        below = [
            (bisect_left(others, numbers[at]) + bisect_right(others, numbers[at])) / 2
            for at in known
        ]
        more += float(np.mean(below))
        weight += len(open_)
    if more / weight < MORE_OFTEN:
        return None
    return (
        "nodes with a class have more of them than those without of the same age in "
        f"{100 * more / weight:.0f} % of pairs: they come with the class"
    )
