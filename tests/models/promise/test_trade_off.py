"""Miss rate, alert rate and precision of a class before alpha is chosen."""

import numpy as np
import pytest

from ringfence.models.promise.trade_off import trade_off


def drawn(rng, n, rare):
    classes = (rng.random(n) < rare).astype(np.int64)
    return rng.normal(2.0 * classes), classes


def test_the_table_tells_what_new_nodes_will_show():
    rng = np.random.default_rng(1)
    scores, classes = drawn(rng, 20_000, 0.05)
    new_scores, new_classes = drawn(rng, 50_000, 0.05)
    row = trade_off(scores, classes, 1, np.array([0.95, 0.05]), alphas=[0.1])[0]
    own = np.sort(scores[classes == 1])
    p = (1 + np.searchsorted(own, new_scores, side="right")) / (len(own) + 1)
    alert = p > 0.1
    assert row.miss_rate == pytest.approx((~alert[new_classes == 1]).mean(), abs=0.03)
    assert row.alert_rate == pytest.approx(alert.mean(), abs=0.03)
    assert row.precision == pytest.approx(new_classes[alert].mean(), abs=0.03)


def test_a_larger_share_of_misses_never_alerts_more():
    scores, classes = drawn(np.random.default_rng(2), 3_000, 0.05)
    rates = [row.alert_rate for row in trade_off(scores, classes, 1, np.array([0.95, 0.05]))]
    assert rates == sorted(rates, reverse=True)


def test_too_few_nodes_alert_everybody():
    scores, classes = np.array([0.1, 0.2, 0.9]), np.array([0, 0, 1])
    row = trade_off(scores, classes, 1, np.array([0.9, 0.1]), alphas=[0.1])[0]
    assert row.in_every_set
    assert (row.alert_rate, row.precision) == (1.0, 0.1)


def test_classes_count_by_their_share_among_all_labelled_nodes():
    """The split gave the rare class more calibration nodes than others: rates must not move."""
    rng = np.random.default_rng(3)
    scores, classes = drawn(rng, 40_000, 0.05)
    keep = (classes == 1) | (rng.random(40_000) < 0.2)
    priors = np.array([0.95, 0.05])
    whole = trade_off(scores, classes, 1, priors, alphas=[0.1])[0]
    fewer = trade_off(scores[keep], classes[keep], 1, priors, alphas=[0.1])[0]
    assert fewer.alert_rate == pytest.approx(whole.alert_rate, abs=0.02)
