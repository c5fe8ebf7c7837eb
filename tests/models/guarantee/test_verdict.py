"""Verdicts have the error rates that they state, however often one looks."""

import numpy as np
import pytest

from ringfence.models.guarantee.anytime import (
    ANYTIME_DELTA,
    anytime_low,
    bound_over_runs,
    log_evidence,
    over_runs,
)
from ringfence.models.guarantee.law import coverage_band, coverage_p_value
from ringfence.models.guarantee.selection import (
    Moments,
    difference_within_runs,
    selection_bias,
)
from ringfence.models.guarantee.verdict import (
    BROKEN_P,
    FIXED_BAND,
    WATCH_P,
    AnytimeBound,
    UsualCoverage,
    describe_verdict,
    judge_coverage,
    labels_needed,
)

ALPHA = 0.1
RUNS, PER_RUN, SEQUENCES = 25, 40, 1_500


def covered_counts(n, seed, chance=None):
    """Hits per run of many sequences: the chance is drawn once with the calibration nodes."""
    rng = np.random.default_rng(seed)
    rank = int(ALPHA * (n + 1))
    drawn = rng.beta(n + 1 - rank, rank, SEQUENCES)
    return rng.binomial(PER_RUN, (drawn if chance is None else chance)[:, None], (SEQUENCES, RUNS))


def ever_broken(counts, n):
    """In how many sequences the anytime bound is crossed at some look, one look after each run."""
    alarms = 0
    for hits in counts:
        looks = (over_runs(n, [PER_RUN] * t, hits[:t], ALPHA) for t in range(1, RUNS + 1))
        alarms += any(look.p_value < BROKEN_P for look in looks)
    return alarms / len(counts)


@pytest.mark.parametrize("n", [60, 500])
def test_who_looks_after_every_run_is_alarmed_at_most_once_in_a_hundred_times(n):
    assert ever_broken(covered_counts(n, seed=n)[:500], n) <= ANYTIME_DELTA + 3 * np.sqrt(
        ANYTIME_DELTA / 500
    )


def test_the_usual_band_alone_would_cry_wolf_when_one_looks_daily():
    """The negative control: the same sequences, the per-look p-value taken at every look."""
    n, hits = 500, covered_counts(500, seed=500)[:300]
    total = hits.cumsum(axis=1)
    wolf = [
        any(
            coverage_p_value(n, PER_RUN * (t + 1), int(row[t]), ALPHA) < BROKEN_P
            for t in range(RUNS)
        )
        for row in total
    ]
    assert np.mean(wolf) > 2 * ANYTIME_DELTA


def test_a_single_look_calls_a_kept_promise_broken_at_most_once_in_a_hundred_times():
    n, hits = 100, covered_counts(100, seed=1).sum(axis=1)
    m = RUNS * PER_RUN
    verdicts = {k: judge_coverage(n, m, m, int(k), ALPHA).verdict for k in set(hits.tolist())}
    broken = np.mean([verdicts[k] == "broken" for k in hits.tolist()])
    assert broken <= BROKEN_P + 3 * np.sqrt(BROKEN_P / SEQUENCES)


def test_a_promise_that_breaks_half_way_is_found_although_it_began_well():
    hits = covered_counts(500, seed=3, chance=np.full(SEQUENCES, 0.9))[:200]
    hits[:, RUNS // 2 :] = np.random.default_rng(4).binomial(
        PER_RUN, 0.75, (len(hits), RUNS - RUNS // 2)
    )
    assert ever_broken(hits, 500) > 0.95


def test_evidence_falls_with_every_hit_and_the_bound_is_where_it_reaches_the_alarm():
    n, m = 80, 150
    evidence = [log_evidence(n, m, k, ALPHA) for k in range(m + 1)]
    assert (np.diff(evidence) < 0).all()
    low = round(anytime_low(n, m, ALPHA) * m)
    assert evidence[low] < -np.log(ANYTIME_DELTA) <= evidence[low - 1]


def test_evidence_is_a_fair_bet_when_all_is_well():
    """Mean 1 under the beta-binomial law, for every number of labels."""
    from ringfence.models.guarantee.law import law_of_covered

    for m in (1, 7, 60):
        law = law_of_covered(50, m, ALPHA)
        bets = np.exp([log_evidence(50, m, k, ALPHA) for k in range(m + 1)])
        assert np.isclose((law * bets).sum(), 1.0)


def test_the_daily_verdict_is_broken_by_the_anytime_bound_alone_and_says_so():
    counts = {"n": 100, "evaluated": 500, "known": 400, "covered": 300, "alpha": ALPHA}
    single = judge_coverage(**counts)
    assert (single.verdict, single.raised_by) == ("broken", "usual band")
    daily = judge_coverage(**counts, anytime=AnytimeBound(0.2, 0.7))
    assert (daily.verdict, daily.raised_by) == ("watch", "usual band")
    both = judge_coverage(**counts, anytime=AnytimeBound(0.001, 0.76))
    assert both.verdict == "broken"
    assert "anytime bound, 76.0 %" in describe_verdict(both, 500, 400, ALPHA)


def test_too_little_says_how_many_runs_more_but_a_disaster_is_said_at_once():
    few = judge_coverage(100, 112, 12, 11, ALPHA)
    assert describe_verdict(few, 112, 12, ALPHA, runs=2).endswith("(12 of 112; about 3 runs more)")
    assert judge_coverage(100, 112, 12, 0, ALPHA).verdict == "broken"
    assert labels_needed(100, ALPHA) > 12


def test_looking_at_many_groups_is_paid_for():
    alone = judge_coverage(200, 100, 100, 77, ALPHA)
    among = judge_coverage(200, 100, 100, 77, ALPHA, comparisons=20)
    assert among.p_value == pytest.approx(20 * alone.p_value)
    assert (alone.verdict, among.verdict) == ("broken", "watch")


@pytest.mark.parametrize("m", [30, 60, 400])
@pytest.mark.parametrize("n", [60, 100, 2_000])
def test_kept_stands_over_coverage_inside_the_exact_band_alone(n, m):
    """Also where the law in force, that of a swinging level, would find everything usual."""
    low, high = coverage_band(n, m, ALPHA)
    swinging = UsualCoverage(0.0, 1.0, p_value=0.5)
    for usual in (None, swinging):
        said = {k: judge_coverage(n, m, m, k, ALPHA, usual=usual) for k in range(m + 1)}
        kept = [k for k, judged in said.items() if judged.verdict == "kept"]
        if m < labels_needed(n, ALPHA):
            assert kept == []
            continue
        assert kept == [k for k in range(m + 1) if low <= k / m <= high]
        assert all(judged.low <= judged.coverage <= judged.high for k, judged in said.items()
                   if k in kept)  # fmt: skip
    assert {judged.raised_by for judged in said.values() if judged.verdict == "watch"} <= {
        FIXED_BAND
    }


def test_watch_is_said_of_one_look_in_twenty_and_of_too_many_covered_as_well():
    n, hits = 100, covered_counts(100, seed=1).sum(axis=1)
    m = RUNS * PER_RUN
    said = {k: judge_coverage(n, m, m, int(k), ALPHA) for k in set(hits.tolist())}
    alarmed = np.mean([said[k].verdict != "kept" for k in hits.tolist()])
    assert alarmed <= WATCH_P + 3 * np.sqrt(WATCH_P / SEQUENCES)
    full = judge_coverage(n, m, m, m, ALPHA)
    assert full.verdict == "watch"
    assert "sets are larger than they need be" in describe_verdict(full, m, m, ALPHA)


def test_the_drawn_bound_is_the_one_that_decides():
    """Total coverage lies below its bound exactly where the promise is called broken."""
    rng = np.random.default_rng(7)
    decided = []
    for _ in range(300):
        drop = rng.integers(1, RUNS)
        chance = np.where(np.arange(RUNS) < drop, 0.9, rng.uniform(0.6, 0.95))
        hits, known = rng.binomial(PER_RUN, chance), np.full(RUNS, PER_RUN)
        ever = over_runs(200, known, hits, ALPHA)
        since = ever.since if ever.p_value < BROKEN_P else 0
        low = bound_over_runs(200, known, hits, ALPHA, since)
        assert (hits.sum() / known.sum() < low) == (ever.p_value < BROKEN_P)
        decided.append((ever.p_value < BROKEN_P, since > 0))
    assert len(set(decided)) == 3


@pytest.mark.parametrize(("alpha", "needed"), [(0.1, 20), (0.01, 200)])
def test_a_few_nodes_with_full_sets_keep_no_promise_yet(alpha, needed):
    """Too few calibration nodes: every set is full. One known node used to be enough for *kept*."""
    n = round(1 / alpha) - 2
    assert labels_needed(n, alpha) == needed
    for known in (1, needed - 1):
        assert judge_coverage(n, 500, known, known, alpha).verdict == "not enough known yet"
    assert judge_coverage(n, 500, needed, needed, alpha).verdict == "kept"
    assert judge_coverage(n, 500, 1, 0, alpha).verdict == "broken"  # a full set cannot miss


def test_a_level_on_too_few_calibration_nodes_has_no_verdict_over_many_runs():
    """Every set would be full at a fixed level; misses are possible where it adapts."""
    usual = UsualCoverage(0.8, 1.0, p_value=0.4)
    judged = judge_coverage(5, 400, 400, 399, ALPHA, usual=usual)
    assert judged.verdict in {"watch", "no verdict"}
    assert "5 calibration nodes are too few" in describe_verdict(judged, 400, 400, ALPHA)
    assert judge_coverage(5, 400, 400, 399, ALPHA).verdict == "broken"


def test_a_biased_sample_is_called_so_and_a_fair_one_is_not():
    rng = np.random.default_rng(0)
    degree = rng.poisson(6, 4_000).astype(float)

    def compare(known):
        parts = [degree[known], degree[~known]]
        moments = [Moments(len(one), one.sum(), (one**2).sum()) for one in parts]
        return selection_bias(
            len(parts[0]), len(parts[1]), [difference_within_runs("degree", [tuple(moments)])]
        )

    assert "biased sample" in compare(rng.random(4_000) < degree / 12)[1]
    assert compare(rng.random(4_000) < 0.5)[0] < 0.1


def test_the_quantile_of_the_beta_law_is_that_of_scipys_distribution():
    from scipy.special import betaincinv
    from scipy.stats import beta

    for a, b in ((55.0, 6.0), (901.0, 100.0), (5.5, 0.75), (1.0, 1.0)):
        assert float(betaincinv(a, b, BROKEN_P)) == float(beta.ppf(BROKEN_P, a, b))
