"""The smallest change: single parts first, then several of which none can be put back."""

import numpy as np
import pytest

from ringfence.jobs.explanation.minimal_change import Asked, find_smallest
from ringfence.jobs.explanation.reasons import TYPE, Part
from ringfence.models.explanation.counterfactual_query import ANY, Question

LEVELS = np.array([0.1, 0.1])


def world(now, effects, kinds=None, together=None):
    """p-values that are sums of the effects of what is left out; `together` may add more."""
    kinds = kinds or ["neighbour"] * len(effects)
    questions = [
        (Question(0, ((place + 1, ANY),)), Part(kind, f"n{place}"))
        for place, kind in enumerate(kinds)
    ]

    def ask(asked):
        rows = []
        for question in asked:
            gone = {other - 1 for other, _ in question.without}
            p = np.array(now) + sum(np.array(effects[place]) for place in gone)
            rows.append(p + (together(gone) if together else 0))
        return np.array(rows).reshape(-1, 2)

    without = ask([question for question, _ in questions])
    return Asked(("a", "b"), LEVELS, np.array(now), questions, without), ask


def parts_of(changes):
    return {(one.class_, one.enters): [part.name for part in one.parts] for one in changes}


def test_one_part_is_the_smallest_and_the_strongest_is_named():
    asked, ask = world([0.5, 0.05], [[-0.1, 0.06], [-0.45, 0.01], [-0.41, 0.2]])
    found = find_smallest(asked, ask)
    assert parts_of(found) == {("a", False): ["n1"], ("b", True): ["n2"]}
    assert {one.class_: one.p for one in found} == pytest.approx({"a": 0.05, "b": 0.25})


def test_several_parts_are_left_out_where_no_single_one_is_enough():
    asked, ask = world([0.5, 0.01], [[-0.2, 0], [-0.15, 0], [-0.1, 0], [-0.01, 0], [0.2, 0]])
    assert parts_of(find_smallest(asked, ask)) == {("a", False): ["n0", "n1", "n2"]}


def test_a_part_that_is_not_needed_is_put_back():
    """The strongest part alone does nothing once two others are gone."""

    def together(gone):
        return [-0.35, 0] if {1, 2} <= gone else [0, 0]

    asked, ask = world([0.5, 0.01], [[-0.06, 0], [-0.03, 0], [-0.03, 0]], together=together)
    assert parts_of(find_smallest(asked, ask)) == {("a", False): ["n1", "n2"]}


def test_a_whole_relationship_type_is_no_single_change():
    asked, ask = world([0.5, 0.01], [[-0.45, 0], [-0.2, 0]], kinds=[TYPE, "neighbour"])
    assert find_smallest(asked, ask) == []


def test_no_answer_where_the_time_is_over():
    asked, _ = world([0.5, 0.05], [[-0.45, 0.06]])
    assert find_smallest(asked, lambda _: np.empty((0, 2))) == []
