"""The promise in force, in words: never stronger than what is proved."""

import itertools

import pytest

from ringfence.models.calibration.sets.registry import calibration_set_named
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.registry import promise_named
from ringfence.models.promise.sentence import NOT_PROMISED, describe_promise

MODES = list(
    itertools.product(
        ("marginal", "class", "group"), ("frozen", "growing", "window"), (True, False)
    )
)


def sentence(kind, calibration_set, adapt, options=None):
    return describe_promise(
        promise_named(kind), 0.1, calibration_set_named(calibration_set), adapt,
        options or PromiseOptions(),
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "calibration_set", "adapt"), MODES)
def test_only_a_frozen_set_at_a_fixed_level_speaks_of_every_node(kind, calibration_set, adapt):
    words = sentence(kind, calibration_set, adapt)
    theorem = calibration_set == "frozen" and not adapt
    assert words.startswith("every node") == theorem
    assert (NOT_PROMISED in words) != theorem


@pytest.mark.parametrize("calibration_set", ["frozen", "growing", "window"])
def test_an_adaptive_level_speaks_of_the_long_run_of_known_nodes(calibration_set):
    words = sentence("marginal", calibration_set, adapt=True)
    assert "long run" in words
    assert "whose class becomes known" in words


def test_shares_of_single_classes_are_named():
    words = sentence("class", "window", True, PromiseOptions({"mule": 0.05}))
    assert "mule: 5 %" in words
