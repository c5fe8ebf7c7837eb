"""Smoothed p-values: uniform, independent of each other, down to the exact law of the urn."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from ringfence.models.exchangeability.smoothed_pvalues import (
    Urn,
    degree_strata,
    ranks_of_p_values,
    reference_sample,
    smoothed_p_values,
)


@pytest.mark.parametrize("bins", [2, 3, 100])
def test_the_urn_is_the_exact_law_of_ranks_against_one_reference(bins):
    """Every order of 3 reference and 3 later scores: how often each row of bins comes.

    Negative control: independent uniform ranks have another law.
    """
    n, m = 3, 3
    gaps = min(bins, n + 1)

    def bin_of(rank):
        return next(b for b in range(gaps) if rank < (b + 1) * (n + 1) // gaps)

    counted = Counter()
    for order in permutations(range(n + m)):
        counted[tuple(bin_of(sum(r < s for r in order[:n])) for s in order[n:])] += 1
    share = {row: Fraction(count, 720) for row, count in counted.items()}
    independent = {}
    for row in product(range(gaps), repeat=m):
        predicted, alone, urn = Fraction(1), Fraction(1), Urn.start(n, bins)
        for b in row:
            rank = b * (n + 1) // gaps
            low, _ = urn.draw(rank, 1e-15)
            high, after = urn.draw(rank, 1 - 1e-15)
            predicted *= Fraction(high - low).limit_denominator(1_000)
            alone *= Fraction((b + 1) * (n + 1) // gaps - rank, n + 1)
            urn = after
        assert predicted == share[row]
        independent[row] = alone
    assert independent != share


@pytest.mark.parametrize("n", [1, 9, 30, 99, 500, 12_345])
def test_bins_of_the_urn_hold_every_rank_once(n):
    """Without memory the p-value of rank k with u = 1/2 lies in the group of ranks that holds k."""
    for rank in {0, 1, n // 3, n // 2, n - 1, n}:
        p, urn = Urn.start(n).draw(rank, 0.5)
        own = urn.seen.index(1)
        bins = len(urn.seen)
        assert own * (n + 1) // bins <= rank < (own + 1) * (n + 1) // bins
        assert p == pytest.approx(
            (own * (n + 1) // bins + (own + 1) * (n + 1) // bins) / 2 / (n + 1)
        )


def test_p_values_of_one_reference_are_independent_and_uniform():
    """Means of 1,000 p-values vary as those of independent ones; without the urn far more."""
    rng = np.random.default_rng(1)
    n, m, sequences = 50, 1_000, 300
    with_urn, without = [], []
    for _ in range(sequences):
        reference, scores, u = rng.random(n), rng.random(m), rng.uniform(1e-9, 1, m)
        with_urn.append(smoothed_p_values(reference, scores, u))
        without.append(((scores[:, None] > reference).sum(1) + u) / (n + 1))

    def spread(p):  # chi-square with sequences - 1 degrees of freedom, if independent
        return (sequences - 1) * np.var(np.mean(p, axis=1), ddof=1) * 12 * m

    assert stats.kstest(np.concatenate(with_urn)[::7], "uniform").pvalue > 0.001
    low, high = stats.chi2(sequences - 1).ppf([0.001, 0.999])
    assert low < spread(with_urn) < high
    assert spread(without) > 5 * high


def test_ties_are_broken_evenly():
    p = smoothed_p_values(np.zeros(9), np.zeros(20_000), np.random.default_rng(2).random(20_000))
    assert stats.kstest(p, "uniform").pvalue > 0.001


def test_ranks_come_back_from_stored_p_values_and_weighted_ones_are_refused():
    for n in (1, 9, 60, 1_999):
        ranks = np.arange(n + 1)
        assert np.array_equal(ranks_of_p_values((ranks + 1) / (n + 1), n), ranks)
    with pytest.raises(ValueError, match="no multiples of 1/10"):
        ranks_of_p_values([0.123], 9)


def test_a_stratum_without_reference_gives_the_uniform_number_itself():
    p = smoothed_p_values([1.0], [0.5, 2.0], [0.3, 0.7], reference_strata=[4], strata=[5, 4])
    assert p[0] == pytest.approx(0.3)
    assert p[1] == pytest.approx(0.85)


def test_the_urn_draws_the_same_bits_one_by_one_and_at_once():
    rng = np.random.default_rng(5)
    ranks, u = rng.integers(0, 251, 400), rng.uniform(1e-9, 1, 400)
    at_once, urn = Urn.start(250).draw_all(ranks, u)
    step, one_by_one = Urn.start(250), []
    for rank, value in zip(ranks, u, strict=True):
        p, step = step.draw(int(rank), float(value))
        one_by_one.append(p)
    assert step == urn
    assert one_by_one == at_once.tolist()


def test_a_reference_is_all_known_nodes_or_a_uniform_part_of_them():
    assert reference_sample(5, 9, seed=0).tolist() == [0, 1, 2, 3, 4]
    drawn = [reference_sample(40, 10, seed=seed) for seed in range(2_000)]
    assert all(len(set(part.tolist())) == 10 for part in drawn)
    assert np.array_equal(drawn[3], reference_sample(40, 10, seed=3))
    times = np.bincount(np.concatenate(drawn), minlength=40)
    assert stats.chisquare(times).pvalue > 0.001


def test_strata_grow_with_the_degree_and_hold_its_neighbours_only():
    degrees = np.arange(1, 5_000)
    strata = degree_strata(degrees)
    assert (np.diff(strata) >= 0).all()
    for stratum in np.unique(strata):
        inside = degrees[strata == stratum]
        assert inside.max() < inside.min() * 1.5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Urn.start(-1), "-1 reference nodes"),
        (lambda: Urn.start(9).draw(10, 0.5), "0 to 9"),
        (lambda: Urn.start(9).draw(3, 1.0), "u outside"),
        (lambda: smoothed_p_values([1.0], [1.0, 2.0], [0.5]), "one u per node"),
        (lambda: smoothed_p_values([1.0], [1.0], [0.5], strata=[1]), "one side only"),
    ],
)
def test_input_that_would_give_wrong_p_values_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()
