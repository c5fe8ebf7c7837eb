"""The registry of scores: one line per score, its two functions agree, settings offer its names."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.settings import ConformalSettings
from ringfence.jobs.project.promise import require_bands_for_score, terms_for_training
from ringfence.models.inference import graph_of, in_neighbours, neighbourhood
from ringfence.models.scores import SCORES, ConformityScore, aps, score_named, tps
from ringfence.models.scores.choice import choose_score
from ringfence.models.scores.node_scores import needs_neighbours, node_scores
from ringfence.models.scores.outputs import score_outputs

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
def test_a_score_that_looks_at_neighbours_is_made_from_another_one(name):
    score = score_named(name)
    assert score.needs_edges == ("edge_index" in score.options) == (score.base is not None)


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_some_nodes_are_those_of_the_whole_graph(name):
    score = score_named(name)
    graph = graph_of(OPTIONS["edge_index"], nodes=60, undirected=False)
    near = in_neighbours(graph, np.arange(60))
    edges = np.stack([near.sources, np.repeat(near.rows, near.counts())])  # each pair once, no loop
    given = {option: OPTIONS[option] for option in score.options} | {"edge_index": edges}
    every = score.all_classes(PROBABILITIES, U, **{o: given[o] for o in score.options})
    wanted = np.array([7, 3, 41, 7])
    around = neighbourhood(graph, wanted) if needs_neighbours(name) else None
    rows = wanted if around is None else around.rows
    options = {option: given[option] for option in score.options if option != "edge_index"}
    some = node_scores(name, PROBABILITIES[rows], U[rows], options, around)
    np.testing.assert_allclose(some, every[wanted], atol=1e-14)


def test_a_diffused_score_without_neighbours_is_refused():
    with pytest.raises(ValueError, match="needed: the neighbours"):
        node_scores("DAPS", PROBABILITIES, U, {"diffusion": 0.5})


def test_settings_offer_the_registered_scores_and_a_choice():
    for name in (*SCORES, "auto"):
        assert ConformalSettings(score=name).score == name
    with pytest.raises(ValidationError) as refused:
        ConformalSettings(score="XPS")
    assert refused.value.errors()[0]["type"] == "literal_error"
    assert refused.value.errors()[0]["msg"] == (
        "Input should be 'auto', 'APS', 'TPS', 'RAPS', 'DAPS' or 'DTPS'"
    )


def test_an_unknown_score_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="'XPS' is unknown; needed: one of APS, TPS, RAPS, DAPS"):
        score_named("XPS")


def test_a_score_that_is_added_is_scored_chosen_and_configured(monkeypatch):
    """One entry in the registry is all that a new score needs: the odds of a class, `ODDS`."""

    def odds(probabilities, u):
        return np.asarray(probabilities) / (1.0 - np.asarray(probabilities))

    def odds_true(probabilities, u, classes):
        return odds(probabilities, u)[np.arange(len(classes)), classes]

    with pytest.raises(ValidationError):
        ConformalSettings(score="ODDS")
    monkeypatch.setitem(SCORES, "ODDS", ConformityScore("ODDS", odds, odds_true))
    settings = ConformalSettings(score="ODDS", rule="NodeEx")
    terms = terms_for_training(settings)
    assert (terms.score, terms.score_options()) == ("ODDS", {})
    with pytest.raises(ConfigError, match='score = "ODDS" with rule = "NodeEx"'):
        require_bands_for_score(settings, terms)  # not said to be safe without bands
    logits = np.log(PROBABILITIES)
    scored = score_outputs("ODDS", logits, U, terms.score_options())
    np.testing.assert_allclose(scored.scores, odds(PROBABILITIES, U))
    candidates = {"APS": aps(PROBABILITIES, U), "ODDS": scored.scores}
    choice = choose_score(candidates, PROBABILITIES.argmax(axis=1), 0.1, seed=1)
    assert [trial.score for trial in choice.trials] == ["APS", "ODDS"]


def test_a_score_that_is_safe_without_bands_is_not_refused(monkeypatch):
    safe = replace(SCORES["TPS"], name="ODDS", safe_without_bands=True)
    monkeypatch.setitem(SCORES, "ODDS", safe)
    settings = ConformalSettings(score="ODDS", rule="NodeEx")
    require_bands_for_score(settings, terms_for_training(settings))
