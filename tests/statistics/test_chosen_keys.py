"""Who may choose the key of a node gains nothing by it, unless u can be guessed.

The guessable seed is the negative control: the same adversary is covered far too seldom there.
"""

import importlib

import pytest

SEED_KEY = 0xC0FFEE5E1F5E1F00BA5EBA11DEADBEA7
NODES, WORLDS, KEYS = 200, 60, 50
FOUR_STANDARD_ERRORS = 2  # in units of the reported two


@pytest.fixture
def chosen_keys(monkeypatch):
    """The simulation of the benchmark that the docs quote."""
    return importlib.import_module("benchmarks.chosen_keys")


@pytest.mark.statistics
@pytest.mark.parametrize("concentration", [0.3, 0.05])
def test_choosing_a_key_gains_nothing_under_a_seed_key(chosen_keys, concentration):
    done = chosen_keys.simulate(SEED_KEY, KEYS, concentration, worlds=WORLDS, nodes=NODES)
    assert abs(done.coverage - 90) < FOUR_STANDARD_ERRORS * done.error + 0.5  # 1 / (n + 1) above
    assert abs(done.others - 90) < FOUR_STANDARD_ERRORS * done.error + 0.5


@pytest.mark.statistics
@pytest.mark.parametrize(("concentration", "at_most"), [(0.3, 80), (0.05, 40)])
def test_a_guessed_seed_breaks_the_promise(chosen_keys, concentration, at_most):
    done = chosen_keys.simulate(
        chosen_keys.GUESSED_SEED, KEYS, concentration, worlds=WORLDS, nodes=NODES
    )
    assert done.coverage + done.error < at_most
    assert abs(done.others - 90) < FOUR_STANDARD_ERRORS * done.error + 0.5  # the others are safe
    honest = chosen_keys.simulate(
        chosen_keys.GUESSED_SEED, 1, concentration, worlds=WORLDS, nodes=NODES
    )
    assert abs(honest.coverage - 90) < FOUR_STANDARD_ERRORS * honest.error + 0.5
