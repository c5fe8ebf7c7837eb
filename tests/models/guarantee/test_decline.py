"""The bet on a decline of coverage: a fair one when all is well, soon won when coverage falls."""

import numpy as np
import pytest

from ringfence.models.guarantee.anytime import over_runs
from ringfence.models.guarantee.decline import (
    DECLINE_DELTA,
    MAX_SIZE,
    TIMES_AS_MANY,
    PredictedMisses,
    _log_ratio,
    decline,
    predict_frozen,
    predict_living,
)
from ringfence.models.guarantee.law import law_of_covered
from ringfence.models.guarantee.living_law import LivingRun, simulate_law
from ringfence.models.guarantee.verdict import BROKEN_P

ALPHA, ALARM = 0.1, -np.log(DECLINE_DELTA)


def frozen_lives(n, nodes, runs, lives, seed, drop_at=None, drop_to=0.85):
    """Misses of each run [lives, runs]: the chance is drawn once with the calibration nodes."""
    rng = np.random.default_rng(seed)
    rank = int(ALPHA * (n + 1))
    chance = np.tile(rng.beta(rank, n + 1 - rank, lives)[:, None], runs)
    if drop_at is not None:
        chance[:, drop_at:] += 1 - drop_to - ALPHA
    return rng.binomial(nodes, chance)


def ever_alarmed(missed, predict):
    known = np.full(missed.shape[1], missed_nodes(missed))
    bets = [decline(known, life, predict(known, life), ALPHA) for life in missed]
    return np.mean([(bet.log_capital >= ALARM).any() for bet in bets])


def missed_nodes(missed):
    return 20 if missed.max() <= 20 else 200


@pytest.mark.parametrize("nodes", [20, 200])
@pytest.mark.parametrize("n", [60, 500])
def test_a_life_of_400_runs_is_alarmed_at_most_once_in_a_hundred_times(n, nodes):
    lives = 400
    missed = frozen_lives(n, nodes, 400, lives, seed=n + nodes)
    rate = ever_alarmed(missed, lambda known, life: predict_frozen(n, known, life, ALPHA))
    assert rate <= DECLINE_DELTA + 3 * np.sqrt(DECLINE_DELTA / lives)


def test_a_bet_that_forgets_the_draw_of_the_calibration_nodes_errs_far_more_often():
    """The negative control: coverage is taken to be 1 - alpha exactly."""

    def exactly(known, _life):
        return PredictedMisses(np.full(len(known), ALPHA), np.full(len(known), MAX_SIZE))

    assert ever_alarmed(frozen_lives(60, 200, 100, 100, seed=5), exactly) > 0.2


@pytest.mark.parametrize("n", [10, 60, 500])
def test_each_ratio_has_mean_one_under_the_urn_and_less_where_more_is_covered(n):
    m = 30
    kept, may_miss = n + 1 - int(ALPHA * (n + 1)), int(ALPHA * (n + 1))
    urn = PredictedMisses(np.full(m + 1, may_miss / (n + 1)), np.full(m + 1, n + 1.0))
    missed, known = np.arange(m + 1), np.full(m + 1, m)
    law = law_of_covered(n, m, ALPHA)[::-1]
    assert kept + may_miss == n + 1
    for times in TIMES_AS_MANY:
        ratios = np.exp(_log_ratio(known, missed, urn, ALPHA, times))
        assert (np.diff(ratios) > 0).all()
        assert (law * ratios).sum() <= 1 + 1e-9
        exact = np.exp(_log_ratio(known, missed, urn, 1e-9, times))
        assert (law * exact).sum() == pytest.approx(1.0)


def test_a_drop_to_85_is_noticed_where_the_total_sees_nothing():
    n, nodes, runs = 500, 200, 75
    missed = frozen_lives(n, nodes, runs, 60, seed=3, drop_at=50)
    known = np.full(runs, nodes)
    seen = ever_alarmed(missed, lambda known, life: predict_frozen(n, known, life, ALPHA))
    totals = [over_runs(n, known, known - life, ALPHA).p_value < BROKEN_P for life in missed]
    assert seen > 0.75
    assert np.mean(totals) < 0.2


def test_coverage_that_falls_and_still_keeps_the_promise_is_no_decline():
    missed = np.concatenate([np.full(50, 4), np.full(50, 18)])  # 98 %, then 91 % of 200
    known = np.full(100, 200)
    bet = decline(known, missed, predict_frozen(500, known, missed, ALPHA), ALPHA)
    assert (bet.log_capital < ALARM).all()


def test_a_level_that_swings_by_itself_is_expected_to():
    """Classes 45 runs late, judged at the level used then: swings that ranks alone bring about."""
    delay, runs, nodes = 45, 300, 100
    schedule = [
        LivingRun(nodes, 500, answered=(t - delay,) if t >= delay else ()) for t in range(runs)
    ]
    law = simulate_law(schedule, 500, ALPHA, step=0.05, seed=1, paths=500)
    known, swings = np.full(runs, nodes), []
    for path in range(400, 440):  # paths of the law itself are lives in which all is well
        missed = np.diff(law.missed[:, path])
        laws = predict_living(law, missed), predict_frozen(500, known, missed, ALPHA)
        bets = [decline(known, missed, predicted, ALPHA) for predicted in laws]
        swings.append([(bet.log_capital >= ALARM).any() for bet in bets])
    living, frozen = np.mean(swings, axis=0)
    assert living <= 0.1
    assert frozen > 0.5


def test_nothing_known_is_no_evidence():
    nobody = np.zeros(3, np.int64)
    assert decline(nobody, nobody, predict_frozen(50, nobody, nobody, ALPHA), ALPHA).newest <= 0
    none = np.zeros(0, np.int64)
    assert decline(none, none, PredictedMisses(np.zeros(0), np.zeros(0)), ALPHA).newest == 0
