"""Who calibrates: the newest by evaluation run, and enough of every promised class."""

import numpy as np
import pytest

from ringfence.models.calibration.window import newest, newest_with_classes


def test_newest_goes_by_the_run_that_evaluated_a_node():
    runs = np.array([3, 1, 2, 0, 3])
    assert newest(runs, np.zeros(5), 3).tolist() == [True, False, True, False, True]


def test_the_border_inside_a_run_is_drawn_by_the_nodes_own_number():
    runs, draw = np.array([1, 1, 1, 1]), np.array([0.4, 0.1, 0.9, 0.2])
    assert newest(runs, draw, 2).tolist() == [False, True, False, True]


def test_a_window_larger_than_what_is_known_takes_all():
    assert newest(np.array([0, 1]), np.zeros(2), 5_000).all()


def test_a_window_of_no_node_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        newest(np.array([0]), np.zeros(1), 0)


def test_a_rare_class_is_topped_up_to_its_newest():
    rng = np.random.default_rng(1)
    runs, draw = np.arange(1_000) // 10, rng.random(1_000)
    classes = (np.arange(1_000) % 50 == 0).astype(np.int64)
    plain = newest(runs, draw, 200)
    topped = newest_with_classes(runs, draw, 200, classes, np.array([1]), least=15)
    assert (plain & (classes == 1)).sum() == 4
    rare = np.flatnonzero(topped & (classes == 1))
    assert len(rare) == 15
    assert rare.tolist() == np.flatnonzero(classes == 1)[-15:].tolist()
    assert (topped & ~plain & (classes == 0)).sum() == 0


def test_a_class_without_a_node_adds_nobody():
    runs = np.array([1, 2])
    chosen = newest_with_classes(runs, np.zeros(2), 1, np.zeros(2, np.int64), np.array([4]))
    assert chosen.tolist() == [False, True]


def test_the_newest_are_those_that_sorting_everybody_would_give():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n = int(rng.integers(1, 60))
        runs = rng.integers(0, 6, n)
        draw = rng.integers(0, 5, n) / 5  # with equal numbers, the earlier row comes first
        size = int(rng.integers(1, 70))
        expected = np.zeros(n, bool)
        expected[np.lexsort((draw, -runs))[:size]] = True
        assert newest(runs, draw, size).tolist() == expected.tolist()
