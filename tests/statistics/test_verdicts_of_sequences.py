"""Verdicts on simulated sequences, the whole way: scores, thresholds, sets, coverage rows, verdict.

A sequence is a made-up model's logits for exchangeable nodes: the first ones calibrate, the others
come in runs. All logits grow sharper from run to run, as if by message passing on a growing graph,
so every run has its own calibration scores and threshold. One look is taken after each run.
"""

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.models.conformal.evaluate import NodeDegrees, NodeScores, Promise, evaluate
from ringfence.models.guarantee.anytime import ANYTIME_DELTA
from ringfence.models.guarantee.verdict import BROKEN_P, WATCH_P
from ringfence.models.rules.node_ex import NODE_EX
from ringfence.models.scores import aps, softmax64

PROMISE = Promise((0.1,), NODE_EX)
CALIBRATION, RUNS, PER_RUN, CLASSES = 500, 20, 30, 4
SEQUENCES, SHIFTED, HALF = 300, 40, RUNS // 2
NODES = CALIBRATION + RUNS * PER_RUN


def audited(seed, shift_from=RUNS):
    """The coverage rows of one sequence; from run `shift_from` on the model knows nothing."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, CLASSES, NODES)
    run = (np.arange(NODES) - CALIBRATION) // PER_RUN  # below 0: calibration
    logits = rng.normal(size=(NODES, CLASSES))
    logits[np.arange(NODES), classes] += np.where(run >= shift_from, 0.0, 1.5)
    u = rng.random(NODES)
    known, ones = classes[:CALIBRATION], np.ones(NODES, np.int64)
    tallies = []
    for t in range(RUNS):
        rows = np.flatnonzero(run == t)
        scores = aps(softmax64(logits * (1 + 0.1 * t)), u)
        own = scores[np.arange(CALIBRATION), known]
        degrees = NodeDegrees(ones[:CALIBRATION], ones[:PER_RUN], np.array([0, NODES]))
        found = evaluate(NodeScores(own, scores[rows], own), degrees, PROMISE)
        hits = int(found.sets[0][np.arange(PER_RUN), classes[rows]].sum())
        counts = dict.fromkeys(COUNTS, 0) | {"evaluated": PER_RUN, "known": PER_RUN}
        sums = dict.fromkeys(SUMS, 0.0)
        n, counts = found.n_calibration, counts | {"covered": hits}
        terms = {"model": "m", "rule": "NodeEx", "score": "APS", "alpha": 0.1, "options": "{}"}
        sizes = {"n_calibration": n, "effective_calibration": float(n)}
        tallies.append(Tally(seq=t + 1, name="", counts=counts, sums=sums, **terms, **sizes))
    return coverage_rows(tallies, (), (), window=1)


def of_slice(sequences, slice_):
    """Rows of one slice, oldest run first, of each sequence."""
    return [[row for row in rows if row.slice == slice_] for rows in sequences]


def at_most(share, many):
    """How often, of so many, what happens with this probability happens; exceeded once in 1,000."""
    return int(binom.ppf(0.999, many, share))


@pytest.fixture(scope="module")
def well():
    return [audited(seed) for seed in range(SEQUENCES)]


@pytest.mark.statistics
def test_who_looks_after_every_run_is_told_broken_in_one_of_a_hundred_sequences_at_most(well):
    alarmed = [any(row.verdict == "broken" for row in rows) for rows in of_slice(well, "total")]
    assert sum(alarmed) <= at_most(ANYTIME_DELTA, SEQUENCES)


@pytest.mark.statistics
def test_peeking_with_the_band_of_a_single_look_cries_wolf(well):
    """The negative control: the same sequences and looks, by the p-value of one look."""
    alarmed = [any(row.p_value < BROKEN_P for row in rows) for rows in of_slice(well, "total")]
    assert sum(alarmed) > at_most(ANYTIME_DELTA, SEQUENCES)


@pytest.mark.statistics
def test_one_look_at_one_run_says_watch_and_broken_as_often_as_stated(well):
    for look in (0, RUNS - 1):
        verdicts = [rows[look].verdict for rows in of_slice(well, "run")]
        assert verdicts.count("broken") <= at_most(BROKEN_P, SEQUENCES)
        assert SEQUENCES - verdicts.count("kept") <= at_most(WATCH_P, SEQUENCES)


@pytest.mark.statistics
def test_a_model_that_loses_its_grip_half_way_is_called_broken_and_by_which_bound():
    sequences = [audited(seed, shift_from=HALF) for seed in range(SHIFTED)]
    totals = of_slice(sequences, "total")
    before = sum(any(row.verdict == "broken" for row in rows[:HALF]) for rows in totals)
    after = [rows[-1] for rows in totals]
    assert before <= at_most(ANYTIME_DELTA, SHIFTED)
    assert sum(row.verdict == "broken" for row in after) >= 0.95 * SHIFTED
    assert all("anytime bound" in row.raised_by for row in after if row.verdict == "broken")
