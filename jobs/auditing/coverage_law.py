"""Which law a model's coverage is held to: that of the mode in which its runs were calibrated.

Frozen calibration has the beta-binomial law, a sum of them in bands (`models.guarantee.law`,
`stratified`). Where known nodes join the calibration, a single run keeps that law, since its nodes
are judged by one set of calibration nodes; several runs together have a narrower one. Where the
level adapts, every row has another. Both are simulated from the calibration on record
(`models.guarantee.living_law`). A class or group with a promise of its own has the law of its own
nodes, of those that calibrate it and of its level, which is its own for a class and that of all
nodes for a group (`part_law`); all nodes together then have the law of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ringfence.connector.store.calibration.schedule import CalibratedRun
from ringfence.connector.store.tallies import Tally
from ringfence.jobs.auditing.summary import Summary
from ringfence.models.guarantee.living_law import CoverageLaw, LivingRun, simulate_law
from ringfence.models.guarantee.stratified import JudgedNodes, equivalent_size
from ringfence.models.guarantee.verdict import UsualCoverage

Schedules = Mapping[str, Sequence[CalibratedRun]]
"""Model -> the calibration of its runs, oldest first."""


@dataclass(frozen=True, slots=True)
class LivingCoverage:
    """The law of the runs of one terms, and where each of them stands in it."""

    law: CoverageLaw
    place: Mapping[int, int]
    adapt: bool

    def usual(self, runs: Summary, covered: int) -> UsualCoverage | None:
        """Return what is usual for some runs in a row; None where the law of one run holds."""
        if runs.runs == 1 and not self.adapt:
            return None
        first, last = self.place[runs.first_seq], self.place[runs.tally.seq] + 1
        return UsualCoverage(*self.law.band(first, last), self.law.p_value(first, last, covered))


def lives(tally: Tally) -> bool:
    """Whether known nodes join a run's calibration, or its level adapts."""
    return tally.calibration_set != "frozen" or tally.adapt


def living_coverage(
    of_terms: Sequence[Tally], every_run: Sequence[Tally], schedules: Schedules
) -> LivingCoverage | None:
    """Return the law of the runs of one terms; None where calibration is frozen.

    Args:
        of_terms: the runs that are counted together, oldest first.
        every_run: all runs of the model with their known nodes, whatever their terms.
        schedules: the calibration of each model's runs.
    """
    last = of_terms[-1]
    schedule = schedules.get(last.model, ())
    on_record = {one.seq for one in schedule if one.own}
    if (
        last.promise != "marginal"
        or not lives(last)
        or not all(tally.seq in on_record for tally in of_terms)
    ):
        return None
    known = {tally.seq: tally for tally in every_run if tally.model == last.model}
    known |= {tally.seq: tally for tally in of_terms}
    return _simulated(of_terms, known, schedule, last.alpha)


def _simulated(
    of_terms: Sequence[Tally],
    known: Mapping[int, Tally],
    schedule: Sequence[CalibratedRun],
    alpha: float,
) -> LivingCoverage:
    """The law from who calibrated which run; a run without known nodes answers no level."""
    runs = living_runs(schedule, known, alpha)
    law = simulate_law(
        runs,
        max(run.training for run in runs),
        alpha,
        step=level_step(of_terms, schedule),
        seed=len(runs),
    )
    return placed(law, of_terms, schedule)


def living_runs(
    schedule: Sequence[CalibratedRun], known: Mapping[int, Tally], alpha: float
) -> list[LivingRun]:
    """Return the runs of a schedule as the law sees them, with the known nodes of each."""
    place = {one.seq: i for i, one in enumerate(schedule)}
    given = _given(schedule)
    return [
        _living_run(one, known, place, alpha)
        if one.own
        else LivingRun(known=given.get(one.seq, 0), training=0)
        for one in schedule
    ]


def level_step(of_terms: Sequence[Tally], schedule: Sequence[CalibratedRun]) -> float:
    """Return the step of the level over runs of one terms; 0 where it is fixed."""
    counted = {tally.seq for tally in of_terms}
    steps = [one.step for one in schedule if one.seq in counted]
    return steps[-1] if of_terms[-1].adapt else 0.0


def placed(
    law: CoverageLaw, of_terms: Sequence[Tally], schedule: Sequence[CalibratedRun]
) -> LivingCoverage:
    """Return the law of some of the runs of a schedule."""
    place = {one.seq: i for i, one in enumerate(schedule)}
    among = law.among([place[tally.seq] for tally in of_terms])
    return LivingCoverage(among, {t.seq: i for i, t in enumerate(of_terms)}, of_terms[-1].adapt)


def _living_run(
    run: CalibratedRun, tallies: Mapping[int, Tally], place: Mapping[int, int], alpha: float
) -> LivingRun:
    first, last, joined = _joined_places(run, place)
    tally = tallies.get(run.seq)
    known = tally.counts["known"] if tally is not None else 0
    worth, rounding = _in_strata(tally, alpha)
    return LivingRun(
        known=known,
        training=max(0, run.n_calibration - joined),
        joined=joined,
        first=first,
        last=last,
        answered=tuple(
            place[seq]
            for seq in run.answered
            if seq in place and seq in tallies and tallies[seq].counts["known"]
        ),
        worth=worth,
        rounding=rounding,
    )


def _given(schedule: Sequence[CalibratedRun]) -> dict[int, int]:
    """How many calibration nodes each run gave in all."""
    most: dict[int, int] = {}
    for one in schedule:
        for seq, count in one.joined.items():
            most[seq] = max(most.get(seq, 0), count)
    return most


def _joined_places(run: CalibratedRun, place: Mapping[int, int]) -> tuple[int, int, int]:
    """Places of the first and after the last run whose nodes calibrate this one, and how many."""
    if run.calibration_set == "frozen":
        return 0, 0, 0
    origins = sorted((place[seq] for seq in run.joined if seq in place), reverse=True)
    counts = {place[seq]: count for seq, count in run.joined.items() if seq in place}
    inside, first = 0, 0
    for origin in origins:  # newest first, until the window is full
        if inside >= run.n_calibration:
            break
        inside, first = inside + counts[origin], origin
    joined = min(inside, run.n_calibration)
    return (first, origins[0] + 1, joined) if joined else (0, 0, 0)


def _in_strata(tally: Tally | None, alpha: float) -> tuple[float | None, float | None]:
    """What the calibration nodes are worth, and how much bands round down, for the known nodes."""
    judged = [] if tally is None else [one for run in tally.strata for one in run if one.known]
    nodes = sum(one.known for one in judged)
    if not judged or tally is None or nodes != tally.counts["known"]:
        return None, None
    strata = [JudgedNodes(one.effective_calibration, one.known, alpha) for one in judged]
    if len(judged) == 1 and judged[0].effective_calibration == judged[0].n_calibration:
        return None, None
    rounding = math.fsum(one.m / nodes * _rounded_down(one.n, alpha) for one in strata)
    return equivalent_size([strata]), rounding


def _rounded_down(n: float, alpha: float) -> float:
    """By how much the share missed among n calibration nodes lies below alpha."""
    if n != int(n):
        return 0.0
    return alpha - math.floor(alpha * (n + 1) + 1e-9) / (n + 1)
