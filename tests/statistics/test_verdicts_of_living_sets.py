"""Verdicts where calibration lives: how often each is a false alarm, and what it finds.

When all is well scores are exchangeable, so only their ranks matter: a sequence is uniform numbers,
judged by the functions that scoring uses. Classes are known some runs later, a run's nodes then
join the calibration and answer the level, by the rule `today` and by the one before. One look is
taken after each run. `benchmarks.verdicts` plays more ways to calibrate, and later classes.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.connector.store.calibration.schedule import CalibratedRun
from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.models.calibration.adaptive_level import AdaptiveLevel
from ringfence.models.calibration.window import newest
from ringfence.models.guarantee.anytime import ANYTIME_DELTA
from ringfence.models.guarantee.verdict import BROKEN_P, WATCH_P

RUNS, PER_RUN, TRAINED, DELAY, ALPHA, STEP, WINDOW = 24, 50, 200, 2, 0.1, 0.05, 300
SEQUENCES = 250
MODES = [("growing", 0.0), ("window", 0.0), ("frozen", STEP), ("window", STEP)]
RULES = ["today", "then"]
LATE = [2, 7, 14]


def judged(known, bands, due, due_bands, level):
    """The p-values of the due, and the strata that judged them."""
    p_of, strata = np.zeros(len(due)), []
    for band in np.unique(due_bands):
        own = np.sort(known[bands == band])
        here = due_bands == band
        p_of[here] = (1 + np.searchsorted(own, due[here], side="right")) / (len(own) + 1)
        n, covered = len(own), int((p_of[here] > level).sum())
        strata.append(StratumCounts(n, float(n), level, int(here.sum()), covered))
    return p_of, strata


def sequence(seed, mode, bands, worse_from=RUNS, late=DELAY, rule="today"):
    """Tallies and schedule of one sequence; from `worse_from` on nodes conform less."""
    (kind, step), rng = mode, np.random.default_rng(seed)
    n = TRAINED + RUNS * PER_RUN
    of_run = np.concatenate([np.zeros(TRAINED, np.int64), np.repeat(np.arange(RUNS) + 1, PER_RUN)])
    scores, band, draw = rng.random(n), rng.integers(0, bands, n), rng.random(n)
    scores = np.where(of_run > worse_from, scores**2, scores)
    level, tallies, schedule = AdaptiveLevel.start(ALPHA, STEP), [], []
    missed, p_of = {}, {}
    for run in range(1, RUNS + 1):
        answered = (run - late - 1,) if run - late - 1 >= 1 else ()
        if step and rule == "today":
            level = level.after_runs([p_of[s] for s in answered])
        elif step:
            level = level.after([missed[s] for s in answered])
        rows = np.flatnonzero(of_run < (1 if kind == "frozen" else max(1, run - late)))
        if kind == "window":
            rows = rows[newest(of_run[rows], draw[rows], WINDOW)]
        due = np.flatnonzero(of_run == run)
        used = level.in_force if step else ALPHA
        p_of[run], strata = judged(scores[rows], band[rows], scores[due], band[due], used)
        hits = p_of[run] > used
        missed[run] = 1 - hits.mean()
        joined = dict.fromkeys(range(1, run - late), PER_RUN) if kind != "frozen" else {}
        today = bool(step) and rule == "today"
        schedule.append(
            CalibratedRun(run, len(rows), kind, joined, answered, step, judged_today=today)
        )
        counts = dict.fromkeys(COUNTS, 0) | {"evaluated": PER_RUN, "known": PER_RUN}
        tallies.append(
            Tally(
                seq=run, model="m", rule="auto", score="APS", alpha=ALPHA, options="{}",
                n_calibration=len(rows), effective_calibration=float(len(rows)), name="",
                counts=counts | {"covered": int(hits.sum())}, sums=dict.fromkeys(SUMS, 0.0),
                calibration_set=kind, adapt=bool(step), strata=(tuple(strata),),
            )
        )  # fmt: skip
    return tallies, {"m": schedule}


def audited(seed, mode, bands, worse_from=RUNS, late=DELAY, rule="today"):
    tallies, schedules = sequence(seed, mode, bands, worse_from, late, rule)
    return coverage_rows(tallies, (), (), 10, schedules)


def of_slice(sequences, slice_):
    return [[row for row in rows if row.slice == slice_] for rows in sequences]


def at_most(share, many):
    """How often, of so many, what happens with this probability happens; exceeded once in 1,000."""
    return int(binom.ppf(0.999, many, share))


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("mode", "bands", "late", "rule"),
    [
        *((mode, bands, DELAY, "today") for mode in MODES for bands in (1, 3)),
        *((mode, 1, late, "today") for mode in MODES for late in LATE[1:]),
        *((mode, 1, DELAY, "then") for mode in MODES if mode[1]),
    ],
)
def test_verdicts_of_every_mode_err_as_rarely_as_stated(mode, bands, late, rule):
    well = [audited(seed, mode, bands, late=late, rule=rule) for seed in range(SEQUENCES)]
    for slice_ in ("run", "window"):
        last = [rows[-1] for rows in of_slice(well, slice_)]
        assert sum(row.verdict == "broken" for row in last) <= at_most(BROKEN_P, SEQUENCES)
        assert sum(row.verdict != "kept" for row in last) <= at_most(WATCH_P, SEQUENCES)
    totals = of_slice(well, "total")
    ever = sum(any(row.verdict == "broken" for row in rows) for rows in totals)
    assert ever <= at_most(ANYTIME_DELTA, SEQUENCES)
    inside = sum(rows[-1].low <= rows[-1].coverage <= rows[-1].high for rows in totals)
    assert inside >= SEQUENCES - at_most(0.06, SEQUENCES)


def class_row(seed, mode, worse_from=RUNS, with_schedule=True):
    """The row of a class with a promise of its own, which has these nodes and no others."""
    tallies, schedules = sequence(seed, mode, 1, worse_from)
    of_runs = [replace(tally, promise="class") for tally in tallies]
    of_class = [replace(tally, name="rare") for tally in of_runs]
    given = {("m", "rare"): schedules["m"]} if with_schedule else {}
    (row,) = [
        row
        for row in coverage_rows(of_runs, of_class, (), 10, schedules, given)
        if row.slice == "class"
    ]
    return row


@pytest.mark.statistics
@pytest.mark.parametrize("mode", MODES)
def test_a_class_with_a_promise_of_its_own_is_judged_by_the_law_of_its_mode(mode):
    many = 100
    well = [class_row(seed, mode) for seed in range(many)]
    assert all(row.own_promise for row in well)
    assert sum(row.verdict == "broken" for row in well) <= at_most(BROKEN_P, many)
    assert sum(row.verdict != "kept" for row in well) <= at_most(WATCH_P, many)
    inside = sum(row.low <= row.coverage <= row.high for row in well)
    assert inside >= many - at_most(0.06, many)
    worse = [class_row(seed, mode, worse_from=RUNS // 2) for seed in range(20)]
    assert sum(row.verdict != "kept" for row in worse) > 15


@pytest.mark.statistics
def test_the_frozen_law_is_too_wide_for_a_class_in_a_growing_set():
    """The negative control: without who calibrated its promise on record."""
    both = [[class_row(seed, ("growing", 0.0), with_schedule=given) for given in (False, True)]
            for seed in range(40)]  # fmt: skip
    frozen, living = np.mean([[row.high - row.low for row in pair] for pair in both], axis=0)
    assert living < 0.7 * frozen


@pytest.mark.statistics
def test_the_frozen_law_is_too_wide_for_a_growing_set():
    """The negative control: without the schedule on record rows get the law of a frozen set."""
    widths = []
    for seed in range(40):
        tallies, schedules = sequence(seed, ("growing", 0.0), 1)
        both = [coverage_rows(tallies, (), (), 10, given)[-1] for given in ({}, schedules)]
        widths.append([row.high - row.low for row in both])
    frozen, living = np.mean(widths, axis=0)
    assert living < 0.7 * frozen


@pytest.mark.statistics
@pytest.mark.parametrize("mode", MODES)
def test_a_change_is_found_in_the_rows_of_its_runs(mode):
    worse = [audited(seed, mode, 1, worse_from=RUNS // 2) for seed in range(40)]
    first_bad = [rows[RUNS // 2] for rows in of_slice(worse, "run")]
    assert sum(row.verdict == "broken" for row in first_bad) > 30


@pytest.mark.statistics
def test_an_adaptive_level_that_keeps_its_promise_is_not_called_broken():
    """A level that sank to keep 90 % under change is no reason to expect more than 90 %."""
    later = [audited(seed, ("frozen", 0.5), 1, worse_from=4) for seed in range(40)]
    last = [rows[-1] for rows in of_slice(later, "run")]
    assert np.mean([row.coverage for row in last]) < 0.93
    assert sum(row.verdict == "broken" for row in last) <= 6
