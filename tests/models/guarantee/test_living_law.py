"""The simulated law of living calibration against sequences of whole scores."""

from dataclasses import replace

import numpy as np
import pytest

from ringfence.models.guarantee.law import coverage_band
from ringfence.models.guarantee.living_law import (
    LivingPart,
    LivingRun,
    simulate_law,
    simulate_parts,
    sum_of_laws,
)

RUNS, BATCH, TRAINED, DELAY, ALPHA = 40, 70, 400, 2, 0.1


def schedule(kind):
    """Who calibrates which run: all batches join two runs later."""
    runs = []
    for t in range(RUNS):
        joined = 0 if kind == "frozen" else max(0, t - DELAY)
        room = 500 if kind == "window" else 10**9
        count = min(joined * BATCH, room)
        first = joined - -(-count // BATCH)
        answered = (t - DELAY - 1,) if t - DELAY - 1 >= 0 else ()
        runs.append(LivingRun(BATCH, min(TRAINED, room - count), count, first, joined, answered))
    return runs


def simulate_scores(kind, step, repetitions, rng, judged_today=False):
    """Covered share of whole sequences of uniform scores, by brute force."""
    shares = []
    runs = schedule(kind)
    for _ in range(repetitions):
        trained, scores = rng.random(TRAINED), []
        level, missed, p_values = ALPHA, [], []
        for run in runs:
            for s in run.answered:
                then = missed[s]
                misses = int((p_values[s] <= level).sum()) if judged_today else then
                level += step * (ALPHA - misses / BATCH)
            joined = np.concatenate([[], *scores[run.first : run.last]])
            joined = joined[len(joined) - run.joined :]
            window = np.sort(np.concatenate([joined, trained[: run.training]]))
            batch = rng.random(BATCH)
            p = (1 + np.searchsorted(window, batch, side="right")) / (len(window) + 1)
            missed.append(int((p <= level).sum()))
            p_values.append(p)
            scores.append(batch)
        shares.append(1 - sum(missed) / (RUNS * BATCH))
    return np.array(shares)


@pytest.mark.parametrize("kind", ["frozen", "growing", "window"])
@pytest.mark.parametrize(("step", "today"), [(0.0, False), (0.05, False), (0.05, True)])
def test_pooled_coverage_has_mean_and_spread_of_whole_simulations(kind, step, today):
    law = simulate_law(schedule(kind), TRAINED, ALPHA, step, seed=1, judged_today=today)
    drawn = 1 - law.missed[-1] / law.known[-1]
    whole = simulate_scores(kind, step, 250, np.random.default_rng(2), today)
    assert abs(drawn.mean() - whole.mean()) < 4 * whole.std() / 250**0.5 + 0.0005
    assert 0.8 < drawn.std() / whole.std() < 1.25


def test_growing_sets_scatter_less_than_the_frozen_law():
    frozen = coverage_band(TRAINED, RUNS * BATCH, ALPHA)
    growing = simulate_law(schedule("growing"), TRAINED, ALPHA).band(0, RUNS)
    assert growing[1] - growing[0] < 0.7 * (frozen[1] - frozen[0])


def test_frozen_sets_have_the_beta_binomial_law():
    exact = coverage_band(TRAINED, RUNS * BATCH, ALPHA)
    drawn = simulate_law(schedule("frozen"), TRAINED, ALPHA).band(0, RUNS)
    assert drawn == pytest.approx(exact, abs=0.006)


def test_p_value_falls_on_beyond_the_reach_of_the_paths():
    law = simulate_law(schedule("window"), TRAINED, ALPHA, 0.05)
    p = [law.p_value(0, RUNS, int(share * RUNS * BATCH)) for share in (0.9, 0.88, 0.85, 0.8)]
    assert p[0] > 0.05 > p[1] > p[2] > p[3]
    assert p[3] < 1e-6


def test_a_run_that_nobody_calibrated_misses_nobody():
    law = simulate_law([LivingRun(50, 0)], 0, ALPHA)
    assert law.missed.max() == 0
    assert law.band(0, 1) == (1.0, 1.0)


def test_nothing_known_gives_the_whole_band():
    law = simulate_law([LivingRun(0, 100)], 100, ALPHA)
    assert law.band(0, 1) == (0.0, 1.0)


def test_the_law_of_some_runs_is_that_of_their_own_misses():
    law = simulate_law(schedule("growing"), TRAINED, ALPHA)
    assert law.among([3, 4, 5]).band(0, 3) == law.band(3, 6)
    assert law.among([5]).p_value(0, 1, 60) == law.p_value(5, 6, 60)


def test_one_part_has_the_law_of_all_nodes_to_the_path():
    runs = schedule("window")
    (part,) = simulate_parts([LivingPart(runs, TRAINED, ALPHA)], 0.05, seed=3)
    assert (part.missed == simulate_law(runs, TRAINED, ALPHA, 0.05, seed=3).missed).all()
    assert (sum_of_laws([part, part]).missed == 2 * part.missed).all()


def test_a_shared_level_pulls_the_sum_to_alpha_and_its_parts_less():
    """Frozen parts, a large step: a level of its own pulls each part, a shared one their sum."""
    runs = schedule("frozen")
    parts = [LivingPart(runs, TRAINED, ALPHA) for _ in range(3)]
    answered = [(t - 1,) if t else () for t in range(RUNS)]
    runs_of_own = [
        replace(run, answered=places) for run, places in zip(runs, answered, strict=True)
    ]
    own = simulate_parts([replace(part, runs=runs_of_own) for part in parts], 0.5)
    shared = simulate_parts(parts, 0.5, answered=answered)
    fixed = simulate_parts(parts)

    def spread(law):
        return float((law.missed[-1] / law.known[-1]).std())

    assert spread(sum_of_laws(shared)) < 0.5 * spread(sum_of_laws(fixed))
    assert spread(own[0]) < 0.5 * spread(fixed[0])
    assert 0.7 * spread(fixed[0]) < spread(shared[0]) < spread(fixed[0])
