"""The law of very many nodes, integrated, beside the sum over every count."""

import numpy as np
import pytest

from ringfence.models.guarantee import large_counts, law
from ringfence.models.guarantee.large_counts import covered_at_most, fewest_covered
from ringfence.models.guarantee.law import calibration_odds, coverage_band, law_of_covered

CASES = [
    (300, 30_000, 0.1),
    (9, 25_000, 0.1),  # b = 1: half of the chances lie above 93 %
    (412.7, 21_000, 0.05),  # an effective size
    (200_000, 21_000, 0.1),  # more calibration nodes than evaluated ones
    (21_000.5, 21_000, 0.01),
]


@pytest.mark.parametrize(("n", "m", "alpha"), CASES)
def test_probabilities_are_those_of_the_sum(n, m, alpha):
    cumulative = np.cumsum(law_of_covered(n, m, alpha))
    odds = calibration_odds(n, alpha)
    asked = np.searchsorted(cumulative, [1e-9, 1e-3, 0.025, 0.3, 0.5, 0.975, 1 - 1e-6])
    for k in {*asked.tolist(), m - 1, m - 2, m // 2, 0}:
        found = covered_at_most(*odds, m, k)
        assert found == pytest.approx(cumulative[k], rel=1e-7, abs=1e-13), k
    assert covered_at_most(*odds, m, m) == 1.0
    assert covered_at_most(*odds, m, -1) == 0.0


@pytest.mark.parametrize(("n", "m", "alpha"), CASES)
def test_bands_are_those_of_the_sum(n, m, alpha):
    cumulative = np.cumsum(law_of_covered(n, m, alpha))
    for probability in (0.005, 0.025, 0.5, 0.975, 0.995):
        summed = int(np.searchsorted(cumulative, probability))
        assert fewest_covered(*calibration_odds(n, alpha), m, probability) == summed


def test_bands_and_p_values_pass_over_at_the_limit(monkeypatch):
    m = law.MAX_SUMMED_COUNTS
    summed = coverage_band(300, m, 0.1), law.coverage_p_value(300, m, int(0.87 * m), 0.1)
    monkeypatch.setattr(law, "MAX_SUMMED_COUNTS", m - 1)
    monkeypatch.setattr(law, "law_of_covered", None)  # nothing is summed any more
    assert coverage_band(300, m, 0.1) == summed[0]
    assert law.coverage_p_value(300, m, int(0.87 * m), 0.1) == pytest.approx(summed[1], rel=1e-9)


def test_every_set_full_or_nobody_covered_has_no_density(monkeypatch):
    monkeypatch.setattr(law, "MAX_SUMMED_COUNTS", 10)
    assert coverage_band(5, 100, 0.1) == (1.0, 1.0)  # too few calibration nodes: full sets


def test_a_coarse_grid_would_be_noticed(monkeypatch):
    """The negative control: with steps of two standard deviations the sum is another one."""
    monkeypatch.setattr(large_counts, "STEP", 2.5)
    odds = calibration_odds(300, 0.1)
    exact = float(np.sum(law_of_covered(300, 30_000, 0.1)[:26_000]))
    assert covered_at_most(*odds, 30_000, 25_999) != pytest.approx(exact, rel=1e-7)
