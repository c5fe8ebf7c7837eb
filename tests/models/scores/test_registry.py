"""The registry of scores: one line per score, its two functions agree, settings offer its names."""

from typing import get_args

import numpy as np
import pytest

from ringfence.jobs.config.settings import ConformalSettings
from ringfence.models.inference import graph_of, incoming, neighbourhood
from ringfence.models.scores import SCORES, aps, score_named, tps
from ringfence.models.scores.node_scores import needs_neighbours, node_scores

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
    near = incoming(graph, np.arange(60))
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
    with pytest.raises(ValueError, match="needed: who they are"):
        node_scores("DAPS", PROBABILITIES, U, {"diffusion": 0.5})


def test_settings_offer_the_registered_scores_and_a_choice():
    offered = {
        name
        for part in get_args(ConformalSettings.model_fields["score"].annotation)
        for name in get_args(part)
    }
    assert offered == {*SCORES, "auto"}


def test_an_unknown_score_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="'XPS' is unknown; needed: one of APS, TPS, RAPS, DAPS"):
        score_named("XPS")
