"""The promise in force, in words: never stronger than what is proved."""

import itertools

import pytest

from ringfence.models.promise.sentence import NOT_PROMISED, describe_promise

MODES = list(
    itertools.product(
        ("marginal", "class", "group"), ("frozen", "growing", "window"), (True, False)
    )
)


@pytest.mark.parametrize(("kind", "calibration_set", "adapt"), MODES)
def test_only_a_frozen_set_at_a_fixed_level_speaks_of_every_node(kind, calibration_set, adapt):
    words = describe_promise(kind, 0.1, calibration_set, adapt)
    theorem = calibration_set == "frozen" and not adapt
    assert words.startswith("every node") == theorem
    assert (NOT_PROMISED in words) != theorem


@pytest.mark.parametrize("calibration_set", ["frozen", "growing", "window"])
def test_an_adaptive_level_speaks_of_the_long_run_of_known_nodes(calibration_set):
    words = describe_promise("marginal", 0.1, calibration_set, adapt=True)
    assert "long run" in words
    assert "whose class becomes known" in words


def test_shares_of_single_classes_are_named():
    words = describe_promise("class", 0.1, "window", True, {"mule": 0.05})
    assert "mule: 5 %" in words
