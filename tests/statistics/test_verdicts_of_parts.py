"""Verdicts of classes and groups that calibrate for themselves, and of all nodes under them.

As in `test_verdicts_of_living_sets` a sequence is uniform numbers. Here every node belongs to a
part, and calibration nodes of its part alone judge it. Groups share one level, which the misses of
all nodes move; classes have a level and an alpha each.
"""

from dataclasses import replace

import numpy as np
import pytest

from ringfence.connector.store.calibration.schedule import CalibratedRun
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.models.calibration.adaptive_level import AdaptiveLevel
from ringfence.models.calibration.window import newest
from ringfence.models.guarantee.anytime import ANYTIME_DELTA
from ringfence.models.guarantee.verdict import BROKEN_P, WATCH_P
from tests.statistics.test_verdicts_of_living_sets import MODES, STEP, at_most

RUNS, PER_RUN, TRAINED, DELAY, WINDOW = 20, 120, 400, 2, 600
SEQUENCES = 100
PARTS = {
    "group": {"region=north": (0.3, 0.1), "region=south": (0.6, 0.1), "no region": (0.1, 0.1)},
    "class": {"mule": (0.2, 0.05), "normal": (0.8, 0.1)},
}
"""Promise -> part -> its share of the nodes, and the share of it that may be missed."""


class Sequence:
    """One sequence of runs under a promise per part; from `worse_from` on the first one is worse.

    tallies: of all nodes. named: of each part. schedules, of_parts: who calibrated.
    """

    def __init__(self, seed, promise, mode, worse_from=RUNS, late=DELAY):
        (self.kind, self.step), rng = mode, np.random.default_rng(seed)
        self.late = late
        self.promise, self.parts = promise, PARTS[promise]
        shares = [share for share, _ in self.parts.values()]
        n = TRAINED + RUNS * PER_RUN
        self.of_run = np.repeat(np.arange(RUNS + 1), [TRAINED] + [PER_RUN] * RUNS)
        self.part, self.draw = rng.choice(len(shares), n, p=shares), rng.random(n)
        scores = rng.random(n)
        worse = (self.of_run > worse_from) & (self.part == 0)
        self.scores = np.where(worse, scores**2, scores)
        self.levels = {name: AdaptiveLevel.start(alpha, STEP) for name, (_, alpha) in
                       self.parts.items()}  # fmt: skip
        self.p = np.zeros(n)
        self.tallies, self.named, self.whole = [], [], []
        self.of_parts = {name: [] for name in self.parts}
        for run in range(1, RUNS + 1):
            self.score(run)

    def score(self, run):
        late = self.late
        answered = (run - late - 1,) if run - late - 1 >= 1 and self.step else ()
        rows = np.flatnonzero(self.of_run < (1 if self.kind == "frozen" else max(1, run - late)))
        if self.kind == "window":
            rows = rows[newest(self.of_run[rows], self.draw[rows], WINDOW)]
        before = range(1, run - late) if self.kind != "frozen" else ()
        strata = []
        for place, (name, (_, alpha)) in enumerate(self.parts.items()):
            own = self.part == place
            asked = own if self.promise == "class" else np.ones_like(own)
            p_known = [self.p[asked & (self.of_run == s)] for s in answered]
            self.levels[name] = self.levels[name].after_runs(p_known)
            level = self.levels[name].in_force if self.step else alpha
            known = np.sort(self.scores[rows[own[rows]]])
            due = np.flatnonzero(own & (self.of_run == run))
            p = (1 + np.searchsorted(known, self.scores[due], side="right")) / (len(known) + 1)
            self.p[due] = p
            stratum = StratumCounts(
                len(known), float(len(known)), level, len(due), int((p > level).sum()),
                name if self.promise == "class" else "",
            )  # fmt: skip
            strata.append(stratum)
            joined = {s: int((own & (self.of_run == s)).sum()) for s in before}
            self.of_parts[name].append(
                CalibratedRun(
                    run,
                    len(known),
                    self.kind,
                    joined,
                    answered,
                    self.step,
                    judged_today=bool(self.step),
                )
            )
            if len(due) and not name.startswith("no "):
                self.named.append(self.tally(run, len(known), name, (stratum,)))
        self.tallies.append(self.tally(run, len(rows), "", tuple(strata)))
        joined = dict.fromkeys(before, PER_RUN)
        self.whole.append(CalibratedRun(run, len(rows), self.kind, joined, answered, self.step,
                                        judged_today=bool(self.step)))  # fmt: skip

    def tally(self, run, n, name, strata):
        known, covered = sum(one.known for one in strata), sum(one.covered for one in strata)
        counts = {"evaluated": known, "known": known, "covered": covered}
        own = {name: alpha for name, (_, alpha) in self.parts.items() if alpha != 0.1}
        options = {"promise": self.promise, "group": "region", "classes": own}
        return Tally(
            seq=run, model="m", rule="auto", score="TPS", alpha=0.1, options=dumps(options),
            n_calibration=n, effective_calibration=float(n), name=name,
            counts=dict.fromkeys(COUNTS, 0) | counts, sums=dict.fromkeys(SUMS, 0.0),
            promise=self.promise, calibration_set=self.kind, adapt=bool(self.step),
            strata=(strata,),
        )  # fmt: skip

    def rows(self, with_schedules=True):
        of_parts = {("m", name): one for name, one in self.of_parts.items()}
        named = ((), self.named) if self.promise == "group" else (self.named, ())
        given = ({"m": self.whole}, of_parts) if with_schedules else ({}, {})
        return coverage_rows(self.tallies, *named, 5, *given)


def totals(rows):
    return [row for row in rows if row.slice == "total"]


def parts(rows):
    return {row.name: row for row in rows if row.own_promise}


@pytest.mark.statistics
@pytest.mark.parametrize("promise", list(PARTS))
@pytest.mark.parametrize("late", [DELAY, 9])
@pytest.mark.parametrize("mode", MODES)
def test_parts_and_all_nodes_are_judged_by_the_law_of_their_mode(mode, late, promise):
    """Few false alarms, bands that hold 95 %, and a change of one part that is found in its row."""
    well = [Sequence(seed, promise, mode, late=late).rows() for seed in range(SEQUENCES)]
    names = [name for name in PARTS[promise] if not name.startswith("no ")]
    for name in [*names, "all nodes"]:
        last = [totals(rows)[-1] if name == "all nodes" else parts(rows)[name] for rows in well]
        inside = sum(row.low <= row.coverage <= row.high for row in last)
        print(f"{promise}, {mode}, {name}: {inside} of {SEQUENCES} inside")
        assert inside >= SEQUENCES - at_most(0.06, SEQUENCES)
        assert sum(row.verdict == "broken" for row in last) <= at_most(BROKEN_P, SEQUENCES)
        assert sum(row.verdict != "kept" for row in last) <= at_most(WATCH_P, SEQUENCES)
    ever = sum(any(row.verdict == "broken" for row in totals(rows)) for rows in well)
    assert ever <= at_most(ANYTIME_DELTA, SEQUENCES)
    worse = [Sequence(seed, promise, mode, RUNS // 2, late).rows() for seed in range(20)]
    assert sum(parts(rows)[names[0]].verdict != "kept" for rows in worse) > 12


@pytest.mark.statistics
@pytest.mark.parametrize("promise", list(PARTS))
def test_the_frozen_law_is_too_wide_for_parts_of_a_growing_set(promise):
    """The negative control: without who calibrated the parts on record."""
    widths = []
    for seed in range(30):
        one = Sequence(seed, promise, ("growing", 0.0))
        both = [one.rows(with_schedules=given) for given in (False, True)]
        widths.append(
            [
                [row.high - row.low for row in (totals(rows)[-1], *parts(rows).values())]
                for rows in both
            ]
        )
    frozen, living = np.mean(widths, axis=0)
    assert (living < 0.75 * frozen).all()


@pytest.mark.statistics
def test_the_law_of_all_nodes_is_too_narrow_for_a_group():
    """The negative control: a group's coverage scatters more than that of all nodes."""
    outside = 0
    for seed in range(SEQUENCES):
        one = Sequence(seed, "group", ("growing", 0.0))
        rows = one.rows()
        every, north = totals(rows)[-1], parts(rows)["region=north"]
        outside += not every.low <= north.coverage <= every.high
    assert outside > at_most(0.06, SEQUENCES)


@pytest.mark.statistics
def test_a_level_of_its_own_is_the_wrong_law_for_a_group():
    """The negative control: one level serves all groups, so a group is not pulled to its alpha."""
    widths = []
    for seed in range(10):
        one = Sequence(seed, "group", ("frozen", 0.5))
        own = [replace(tally, promise="class", options="{}") for tally in one.named]
        every = [replace(tally, promise="class", options="{}") for tally in one.tallies]
        of_parts = {("m", name): schedule for name, schedule in one.of_parts.items()}
        rows = coverage_rows(every, own, (), 5, {"m": one.whole}, of_parts)
        groups = parts(one.rows())
        widths.append(
            [
                (row.high - row.low) / (groups[name].high - groups[name].low)
                for name, row in parts(rows).items()
            ]
        )
    assert np.mean(widths) < 0.7
