"""The promise of new models, and what a trained one keeps."""

from dataclasses import asdict, replace

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.conformal import ConformalSettings
from ringfence.jobs.project.promise import (
    FIRST_TERMS,
    differences_from_new,
    options_of,
    terms_for_training,
    terms_in_force,
)
from ringfence.jobs.project.promise_check import require_calibration

TRAINED_TODAY = {"promise": terms_for_training(ConformalSettings()).as_manifest()}


def mode(terms):
    return terms.calibration_set, terms.adapt


def test_a_new_model_is_calibrated_by_a_living_window_at_an_adaptive_level():
    assert mode(terms_for_training(ConformalSettings())) == ("window", True)


@pytest.mark.parametrize("manifest", [{}, {"promise": FIRST_TERMS.as_manifest()}])
def test_a_model_that_was_trained_before_keeps_its_frozen_set(manifest):
    assert mode(terms_in_force(ConformalSettings(), manifest)) == ("frozen", False)
    said = differences_from_new(ConformalSettings(), manifest)
    assert "calibration_set: this model keeps frozen; one trained now has window" in said
    assert "adapt: this model keeps False; one trained now has True" in said


def test_the_theorem_of_the_paper_is_one_setting_away():
    frozen = ConformalSettings(calibration_set="frozen")
    assert mode(terms_for_training(frozen)) == ("frozen", False)
    assert mode(terms_in_force(frozen, TRAINED_TODAY)) == ("frozen", False)


def test_an_adaptive_level_on_a_frozen_set_has_to_be_asked_for():
    asked = ConformalSettings(calibration_set="frozen", adapt=True)
    assert mode(terms_for_training(asked)) == ("frozen", True)


def test_edge_exchangeable_weights_keep_a_frozen_set_unless_told_otherwise():
    assert mode(terms_for_training(ConformalSettings(rule="EdgeEx"))) == ("frozen", False)
    asked = ConformalSettings(rule="EdgeEx", calibration_set="window")
    with pytest.raises(ConfigError, match="sampled edges"):
        require_calibration(asked, terms_for_training(asked))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"drift_half_life_days": 30.0, "calibration_set": "frozen"}, "all weights shrink"),
        ({"rule": "EdgeEx", "weights": "shift"}, "one kind of weights"),
    ],
)
def test_ways_to_calibrate_that_break_the_promise_are_refused(given, reason):
    settings = ConformalSettings(**given)
    with pytest.raises(ConfigError, match=reason):
        require_calibration(settings, terms_for_training(settings))


def test_a_model_keeps_how_long_it_waits_for_a_class_that_was_never_seen():
    before = {"promise": FIRST_TERMS.as_manifest() | {"calibration_set": "window", "adapt": True,
                                                      "adapt_rule": "today"}}  # fmt: skip
    del before["promise"]["longest_wait"]
    settings = ConformalSettings()
    new = terms_for_training(settings)
    kept, given = (
        terms_in_force(settings, before),
        terms_in_force(settings, {"promise": asdict(new)}),
    )
    assert (kept.longest_wait, kept.waits_by_runs) == ("90 runs", True)
    assert (given.longest_wait, given.waits_by_runs) == ("1 year", False)
    assert "longest_wait" not in options_of(settings, kept)
    assert '"longest_wait":"1 year"' in options_of(settings, given)
    assert "longest_wait: this model keeps 90 runs; one trained now has 1 year" in (
        differences_from_new(settings, before)
    )
    by_age = replace(new, adapt_rule="then")  # nothing is waited for by that rule
    assert "longest_wait" not in options_of(settings, by_age)
