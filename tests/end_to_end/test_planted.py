"""Graphs with known answers (`benchmarks.planted`): init to score without editing, all right."""

import importlib

import numpy as np
import pytest

from tests.forms import PUBLISHED_SEED_KEY

planted = importlib.import_module("benchmarks.planted")
WORLDS = {world.name: world for world in planted.WORLDS}
AMOUNTS = "amounts of transfers decide"


@pytest.fixture
def try_world(graph, tmp_path, monkeypatch):
    """Run the product on a planted graph in an empty database."""
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", graph.auth[1])
    monkeypatch.setenv("RINGFENCE_SEED_KEY", PUBLISHED_SEED_KEY)

    def try_(name, accounts):
        return planted.try_world(graph, graph.auth[0], WORLDS[name], tmp_path, accounts)

    return try_


def test_a_choice_is_judged_on_accounts_that_it_never_saw():
    rng = np.random.default_rng(1)
    good = rng.exponential(0.5, 200)
    losses = {"typed_sage": good + 0.1, "trees": good, "blend": good + rng.normal(0, 0.1, 200)}
    assert planted.is_well_chosen("trees", losses)
    assert planted.is_well_chosen("blend", losses)  # it differs from the best by chance alone
    assert not planted.is_well_chosen("typed_sage", losses)


@pytest.mark.slow
def test_amounts_of_raw_transfers_beat_the_largest_class_without_editing(try_world):
    row = try_world(AMOUNTS, 500)
    assert row["wrong"] is None
    assert row["area_low"] > 0.6
    assert row["over_own_low"] > 0.05  # own columns are noise: they do as the largest class does
    assert "helps" in row["said"][0]


@pytest.mark.long
@pytest.mark.parametrize("name", WORLDS)
def test_choice_graph_check_and_leaks_are_right(try_world, name):
    row = try_world(name, 1_000)
    assert row["wrong"] is None
