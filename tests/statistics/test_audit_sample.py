"""Selective labels bias plain coverage; the audit sample's row they do not touch.

Worlds of two classes: whoever works through the list of nodes that may be mules finds out their
classes, and nobody ever looks at the others. Nodes are drawn, tallied and judged by the functions
that runs and audits use.
"""

import numpy as np
import pytest
from scipy.stats import binom

from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.jobs.auditing.sample_coverage import QUARTER, sample_rows
from ringfence.models.conformal import prediction_sets, threshold
from ringfence.models.guarantee.sample_size import nodes_to_notice
from ringfence.models.hashing import SAMPLE, draw_keys

ALPHA, MULES = 0.1, 0.25
DAY_NS = 86_400 * NANOSECONDS


def nodes(rng, count):
    """Classes and conformity scores of some nodes."""
    classes = (rng.random(count) < MULES).astype(int)
    odds = rng.normal(2.0 * classes - 1.0, 1.2)
    mule = 1 / (1 + np.exp(-odds))
    return classes, np.stack([1 - mule, mule], axis=1)


class Life:
    """Daily runs of one version with frozen calibration: which nodes are covered, listed, drawn."""

    def __init__(self, seed, runs=12, per_run=500, drawn=25, calibration=2_000):
        rng = np.random.default_rng(seed)
        classes, scores = nodes(rng, calibration)
        limit = threshold(scores[np.arange(calibration), classes], ALPHA)
        self.calibration, self.covered, self.listed, self.sampled = calibration, [], [], []
        for run in range(runs):
            classes, scores = nodes(rng, per_run)
            sets = np.asarray(prediction_sets(scores, limit))
            self.covered.append(sets[np.arange(per_run), classes])
            self.listed.append(sets[:, 1])
            keys = [f"i:{run * per_run + i}" for i in range(per_run)]
            chosen = set(draw_keys(keys, seed, SAMPLE, drawn))
            self.sampled.append(np.array([key in chosen for key in keys]))

    def tallies(self, chosen, known):
        """Tallies of the chosen nodes of every run; `known` are those whose class is known."""
        return [
            tally(run, self.calibration, of_run, known[run][of_run], self.covered[run][of_run])
            for run, of_run in enumerate(chosen)
        ]

    @property
    def coverage(self):
        return np.concatenate(self.covered).mean()


def tally(run, calibration, chosen, known, covered):
    counts = dict.fromkeys(COUNTS, 0) | {
        "evaluated": int(chosen.sum()),
        "known": int(known.sum()),
        "covered": int((known & covered).sum()),
    }
    sums = dict.fromkeys(SUMS, 0.0)
    terms = "v-1", "NodeEx", "TPS", ALPHA, "{}", calibration, float(calibration), ""
    return Tally(run + 1, *terms, counts, sums)


def times(runs):
    return {run + 1: run * DAY_NS for run in range(runs)}


def everybody(life):
    return [np.ones(len(covered), bool) for covered in life.covered]


@pytest.mark.statistics
def test_selective_labels_bias_plain_coverage_and_not_the_sample():
    plain, sampled = [], []
    for seed in range(60):
        life = Life(seed)
        labelled = [a | b for a, b in zip(life.listed, life.sampled, strict=True)]
        listed_alone = coverage_rows(life.tallies(everybody(life), life.listed), [], [], 1)
        rows = sample_rows(life.tallies(life.sampled, labelled), times(12))
        plain.append(listed_alone[-1].coverage - life.coverage)
        sampled.append(rows[-2].coverage - life.coverage)
    plain, sampled = np.array(plain), np.array(sampled)
    errors = sampled.std(ddof=1) / len(sampled) ** 0.5
    assert abs(sampled.mean()) < 3 * errors < 0.01
    assert abs(plain.mean()) > 0.03  # the red control: whoever is listed gets labelled


@pytest.mark.statistics
def test_bounds_hold_and_verdicts_err_as_rarely_as_stated_whoever_hides_classes():
    """Missing are those that do most harm: covered ones, or missed ones."""
    watched = broken = looks = 0
    for seed in range(100):
        life = Life(1_000 + seed)
        for hide_covered in (True, False):
            rng = np.random.default_rng(seed)
            known = [
                ~((covered == hide_covered) & (rng.random(len(covered)) < 0.3))
                for covered in life.covered
            ]
            rows = sample_rows(life.tallies(life.sampled, known), times(12))
            whole = rows[-2]
            inside = np.concatenate([c[s] for c, s in zip(life.covered, life.sampled, strict=True)])
            missing = whole.evaluated - whole.known
            assert whole.covered <= inside.sum() <= whole.covered + missing
            assert whole.coverage is None
            at_best = (whole.covered + missing) / whole.evaluated
            assert (at_best < whole.anytime_low) == (whole.verdict == "broken")
            watched += whole.verdict == "watch"
            broken += any(row.verdict == "broken" for row in rows)
            looks += 1
    assert watched <= binom.ppf(0.999, looks, 0.05)
    assert broken <= binom.ppf(0.999, looks, 0.01)


@pytest.mark.statistics
def test_a_quarter_of_the_needed_size_notices_85_instead_of_90_as_often_as_doctor_says():
    needed = nodes_to_notice(0.9, 0.85)
    rng, per_run, lives = np.random.default_rng(3), -(-needed // 9), 400
    days = {1: 0} | {run: (100 + 10 * run) * DAY_NS for run in range(2, 11)}
    noticed = {0.85: 0, 0.9: 0}
    for share in noticed:
        for _ in range(lives):
            runs = [rng.random(5_000) < 0.9, *(rng.random((9, per_run)) < share)]
            tallies = [
                tally(run, 10**6, np.ones(len(covered), bool), np.ones(len(covered), bool), covered)
                for run, covered in enumerate(runs)
            ]
            row = sample_rows(tallies, days)[-1]
            assert (row.name, row.evaluated) == (QUARTER, 9 * per_run)
            noticed[share] += row.verdict == "watch"
    assert noticed[0.85] >= binom.ppf(0.001, lives, 0.8)
    assert noticed[0.9] <= binom.ppf(0.999, lives, 0.05)
