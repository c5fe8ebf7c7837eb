"""The registry of scores: one line per score, its two functions agree, settings offer its names."""

from typing import get_args

import numpy as np
import pytest

from ringfence.jobs.config.settings import ConformalSettings
from ringfence.models.scores import SCORES, aps, score_named, tps

RNG = np.random.default_rng(3)
PROBABILITIES = RNG.dirichlet(np.full(4, 0.5), size=60)
U, CLASSES = RNG.random(60), RNG.integers(0, 4, 60)
OPTIONS = {
    "penalty": 0.1,
    "k_reg": 1,
    "edge_index": RNG.integers(0, 60, (2, 300)),
    "diffusion": 0.4,
}


@pytest.mark.parametrize("name", SCORES)
def test_the_score_of_the_true_class_is_that_of_all_classes(name):
    score = score_named(name)
    options = {option: OPTIONS[option] for option in score.options}
    every = score.all_classes(PROBABILITIES, U, **options)
    own = score.true_class(PROBABILITIES, U, CLASSES, **options)
    assert every.shape == PROBABILITIES.shape
    assert np.array_equal(own, every[np.arange(60), CLASSES])


def test_the_names_lead_to_the_functions_of_the_papers():
    assert np.array_equal(score_named("APS").all_classes(PROBABILITIES, U), aps(PROBABILITIES, U))
    assert np.array_equal(score_named("TPS").all_classes(PROBABILITIES, None), tps(PROBABILITIES))


@pytest.mark.parametrize("name", SCORES)
def test_a_score_that_no_job_can_choose_is_one_that_needs_options(name):
    score = score_named(name)
    assert score.library_only == bool(score.options)
    assert score.needs_edges == ("edge_index" in score.options)


def test_settings_offer_the_scores_of_the_product_and_no_others():
    offered = get_args(ConformalSettings.model_fields["score"].annotation)
    assert set(offered) == {score.name for score in SCORES.values() if not score.library_only}


def test_an_unknown_score_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="'XPS' is unknown; needed: one of APS, TPS, RAPS, DAPS"):
        score_named("XPS")
