"""The sample of older runs: the stated chance is the exact law, and the draw follows it."""

from itertools import combinations

import pytest
from scipy.stats import binomtest, hypergeom

from ringfence.jobs.integrity.checkpoint.draw import (
    Sample,
    chance_of_notice,
    chances_of_notice,
    draw,
    pick,
)


@pytest.mark.parametrize(("units", "drawn", "edited"), [(1, 1, 1), (10, 3, 2), (8760, 100, 50)])
def test_the_chance_is_the_hypergeometric_law(units, drawn, edited):
    exact = hypergeom(units, edited, drawn).sf(0)
    assert chance_of_notice(units, drawn, edited) == pytest.approx(exact, abs=1e-11)
    replaced = 1 - (1 - drawn / units) ** edited
    assert chance_of_notice(units, drawn, edited) >= replaced - 1e-11


def test_the_chance_counts_the_samples_that_hold_an_edited_run():
    for drawn in range(5):
        for edited in range(5):
            samples = list(combinations(range(4), min(drawn, 4)))
            held = sum(any(unit < edited for unit in sample) for sample in samples)
            assert chance_of_notice(4, drawn, edited) == pytest.approx(held / len(samples))


def test_each_run_is_drawn_as_often_as_the_law_says():
    sizes = dict.fromkeys(range(1, 21), 10)
    samples = [draw(sizes, 50, b"key", f"nonce {i}") for i in range(4000)]
    assert {len(sample.runs) for sample in samples} == {5}
    for edited in ({7}, {1, 20}, {2, 3, 4}):
        noticed = sum(not edited.isdisjoint(sample.runs) for sample in samples)
        expected = chance_of_notice(20, 5, len(edited))
        assert binomtest(noticed, len(samples), expected).pvalue > 1e-4
        half = chance_of_notice(20, 2, len(edited))
        assert binomtest(noticed, len(samples), half).pvalue < 1e-6  # the control


def test_how_many_are_drawn_does_not_depend_on_which():
    sizes = {seq: seq * 100 for seq in range(1, 11)}
    assert {len(draw(sizes, 1000, b"key", str(i)).runs) for i in range(50)} == {2}
    assert draw(sizes, 10**9, b"key", "n").runs == tuple(sizes)
    assert draw(sizes, 0, b"key", "n").runs == ()
    assert draw({}, 100, b"key", "n") == Sample((), 0, 0, "n")
    assert len(draw({1: 0, 2: 0}, 1, b"key", "n").runs) == 1


def test_who_lacks_the_key_or_the_nonce_can_not_foretell_the_draw():
    units = list(range(1000))
    first = pick(units, 10, b"key", "nonce")
    assert first == pick(units, 10, b"key", "nonce")
    assert first != pick(units, 10, b"another", "nonce")
    assert first != pick(units, 10, b"key", "another")


def test_other_blocks_are_drawn_in_at_least_the_share_of_runs():
    sample = Sample((1, 2, 3), 40, 300, "n")
    for units in range(100):
        assert sample.share(units) >= units * 3 / 40
    assert chances_of_notice(Sample((1,), 5, 1, "n")) == {1: 0.2}
