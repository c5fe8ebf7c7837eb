"""What a training says of its promise: how many nodes a window has so far."""

import pytest

from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.project.promise import terms_for_training
from ringfence.jobs.training.score_choice import TrainedPromise, describe_trained_promise


def _said(calibration, **settings):
    terms = terms_for_training(ConformalSettings(**settings))
    return describe_trained_promise(TrainedPromise(terms, None), 10, calibration)[1]


def test_a_window_larger_than_the_labels_says_how_many_there_are():
    words = _said(293, window_nodes=50_000)
    assert words.startswith("the newest 50,000 nodes of known class calibrate (293 so far);")


@pytest.mark.parametrize(
    ("calibration", "settings"),
    [(6_000, {}), (293, {"calibration_set": "growing"}), (293, {"calibration_set": "frozen"})],
)
def test_a_full_window_and_the_other_ways_to_calibrate_say_nothing_of_it(calibration, settings):
    assert "so far" not in _said(calibration, **settings)


def test_diffusion_without_relationships_is_said_to_change_nothing():
    terms = terms_for_training(ConformalSettings())
    said = describe_trained_promise(TrainedPromise(terms, None), 0, 293)
    assert any("DAPS is the same as APS here" in words for words in said)
    assert not any(
        "is the same" in words
        for words in describe_trained_promise(TrainedPromise(terms, None), 1, 293)
    )
