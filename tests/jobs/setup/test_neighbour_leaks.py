"""Leaks by relationships: who is there, what stands there, how many, at the same age."""

import doctest
import random

from ringfence.connector.neo4j.sample import SampledRelation
from ringfence.jobs.setup.proposal import neighbour_leaks
from ringfence.jobs.setup.proposal.neighbour_leaks import (
    find_more_with_class,
    find_presence_leak,
    find_same_ages,
    find_telling_neighbours,
    items_share,
)

CLASSES = ["late", "fine", "lost"]


def relation(numbers):
    return SampledRelation(
        "HAS", True, "Event", tuple(n > 0 for n in numbers), sum(numbers), tuple(numbers)
    )


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(neighbour_leaks).failed == 0


def test_a_class_at_one_of_many_neighbours_is_seen_wherever_it_stands():
    rng = random.Random(1)
    classes = [rng.choice(CLASSES) for _ in range(400)]
    noise = [f"note {at}" for at in range(60)]
    events = [tuple(sorted([*rng.sample(noise, 6), f"z {y}"])) for y in classes]
    told = find_telling_neighbours(events, {"text": events}, classes, list(range(400)))
    assert told is not None
    assert "on later nodes" in told
    rng.shuffle(classes)  # the control: the same neighbours, which say nothing
    assert items_share(events, classes) < 0.2


def test_nodes_that_lack_a_relationship_for_being_young_are_no_leak():
    """Every old node has one and no young one has; half of each age have a class."""
    classes = ["a" if at % 2 else None for at in range(400)]
    numbers = [int(at < 200) for at in range(400)]
    assert find_presence_leak(relation(numbers), classes, range(400)) is None
    numbers = [int(y is not None) for y in classes]  # the control: it comes with the class
    said = find_presence_leak(relation(numbers), classes, range(400))
    assert "of the same age" in said


def test_at_the_same_age_a_leak_shows_that_all_ages_together_hide():
    """The old ones have it, none of them with a class; of the young only those with a class."""
    classes = ["a" if at >= 200 and at % 2 else None for at in range(400)]
    numbers = [int(at < 200 or y is not None) for at, y in enumerate(classes)]
    assert find_presence_leak(relation(numbers), classes) is None  # all ages together
    said = find_presence_leak(relation(numbers), classes, range(400))
    assert "of the same age" in said


def test_without_nodes_of_the_same_age_all_are_compared():
    classes = ["a"] * 200 + [None] * 200  # those that are known are older, all of them
    assert find_same_ages(classes, range(400)) is None
    said = find_presence_leak(relation([1] * 200 + [0] * 200), classes, range(400))
    assert "0 % of those without: it comes" in said


def test_far_more_relationships_with_a_class_at_the_same_age_are_named():
    rng = random.Random(2)
    classes = ["a" if at % 2 else None for at in range(400)]
    numbers = [rng.randint(1, 9) + (9 if y else 0) for y in classes]
    said = find_presence_leak(relation(numbers), classes, range(400))
    assert "more of them than those without of the same age" in said
    # the control: as many, but older nodes have more of them, and more of these have a class
    classes = ["a" if rng.random() < 0.9 - at / 500 else None for at in range(400)]
    numbers = [1 + (400 - at) // 20 for at in range(400)]
    assert find_more_with_class(numbers, find_same_ages(classes, range(400))) is None
    assert find_presence_leak(relation(numbers), classes) is None  # ages are not known


def test_times_that_have_no_order_compare_all_nodes():
    classes = ["a" if at % 2 else None for at in range(60)]
    assert find_same_ages(classes, ["x" if at % 3 else at for at in range(60)]) is None
