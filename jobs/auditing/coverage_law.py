"""Which law a model's coverage is compared with: that of how its runs were calibrated.

Frozen calibration has the beta-binomial law, a sum of them in bands (`models.guarantee.law`,
`stratified`). Where known nodes join the calibration, a single run keeps that law, since its nodes
are judged by one set of calibration nodes; several runs together have a narrower one. Where the
level adapts, every row has another. Both are simulated from the calibration on record
(`models.guarantee.living_law`). A class or group with a promise of its own has the law of its own
nodes, of those that calibrate it and of its level, which is its own for a class and that of all
nodes for a group (`group_coverage_law`); all nodes together then have the law of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ringfence.connector.store.calibration.schedule import CalibratedRun
from ringfence.connector.store.tallies import Tally
from ringfence.jobs.auditing.summary import Summary
from ringfence.models.calibration.sets.registry import calibration_set_named
from ringfence.models.guarantee.living_law import CoverageLaw, LivingRun, simulate_law
from ringfence.models.guarantee.stratified import JudgedNodes, equivalent_size
from ringfence.models.guarantee.verdict import UsualCoverage
from ringfence.models.promise.registry import promise_named

SAFE_SHARE = 0.8
"""Of the largest stable step; above, swings last for so long that the anytime bound errs."""

Schedules = Mapping[str, Sequence[CalibratedRun]]
"""Model -> the calibration of its runs, oldest first."""


@dataclass(frozen=True, slots=True)
class LivingCoverage:
    """The coverage law of runs that share the same terms, and the place of each run in it.

    `no_verdict` says why the anytime bound does not hold for them; empty where it does.
    """

    law: CoverageLaw
    place: Mapping[int, int]
    adapt: bool
    no_verdict: str = ""

    def usual(self, runs: Summary, covered: int) -> UsualCoverage | None:
        """Return what is usual for some runs in a row; None where the law of one run holds."""
        if runs.runs == 1 and not self.adapt:
            return None
        first, last = self.place[runs.first_seq], self.place[runs.tally.seq] + 1
        return UsualCoverage(
            *self.law.band(first, last), self.law.p_value(first, last, covered), self.no_verdict
        )

    def among(self, seqs: Sequence[int]) -> LivingCoverage:
        """Return the law of some of the runs, in the given order."""
        law = self.law.among([self.place[seq] for seq in seqs])
        return replace(self, law=law, place={seq: i for i, seq in enumerate(seqs)})


def uses_recent_labels(tally: Tally) -> bool:
    """Whether known nodes join a run's calibration, or its level adapts."""
    return calibration_set_named(tally.calibration_set).uses_recent_labels or tally.adapt


def living_coverage(
    of_terms: Sequence[Tally], every_run: Sequence[Tally], schedules: Schedules
) -> LivingCoverage | None:
    """Return the coverage distribution of runs that share the same settings; None where frozen.

    Args:
        of_terms: the runs that are counted together, oldest first.
        every_run: all runs of the model with their known nodes, whatever their terms.
        schedules: the calibration of each model's runs.
    """
    last = of_terms[-1]
    schedule = schedules.get(last.model, ())
    on_record = {calibrated_run.seq for calibrated_run in schedule if calibrated_run.is_own}
    if (
        promise_named(last.promise).divides_nodes
        or not uses_recent_labels(last)
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
    """The law, simulated from the schedule; a run without known nodes moves no level."""
    runs = living_runs(schedule, known, alpha)
    law = simulate_law(
        runs,
        max(run.training for run in runs),
        alpha,
        step=level_step(of_terms, schedule),
        seed=len(runs),
        judged_today=is_judged_today(of_terms, schedule),
    )
    return restrict_law(law, of_terms, schedule)


def living_runs(
    schedule: Sequence[CalibratedRun], known: Mapping[int, Tally], alpha: float
) -> list[LivingRun]:
    """Return the runs of a schedule in the law's form, with the known nodes of each."""
    place = {run.seq: i for i, run in enumerate(schedule)}
    given = _given(schedule)
    return [
        _living_run(run, known, place, alpha)
        if run.is_own
        else LivingRun(known=given.get(run.seq, 0), training=0)
        for run in schedule
    ]


def level_step(of_terms: Sequence[Tally], schedule: Sequence[CalibratedRun]) -> float:
    """Return the step of the level over runs with the same terms; 0 if it is fixed."""
    counted = {tally.seq for tally in of_terms}
    steps = [run.step for run in schedule if run.seq in counted]
    return steps[-1] if of_terms[-1].adapt else 0.0


def is_judged_today(of_terms: Sequence[Tally], schedule: Sequence[CalibratedRun]) -> bool:
    """Whether answered runs were judged at the level of the day over runs of one terms."""
    counted = {tally.seq for tally in of_terms}
    return any(run.judged_today for run in schedule if run.seq in counted)


def restrict_law(
    law: CoverageLaw, of_terms: Sequence[Tally], schedule: Sequence[CalibratedRun]
) -> LivingCoverage:
    """Return the law of some of the runs of a schedule."""
    place = {run.seq: i for i, run in enumerate(schedule)}
    among = law.among([place[tally.seq] for tally in of_terms])
    return LivingCoverage(
        among,
        {t.seq: i for i, t in enumerate(of_terms)},
        of_terms[-1].adapt,
        describe_swinging(of_terms, schedule),
    )


def describe_swinging(of_terms: Sequence[Tally], schedule: Sequence[CalibratedRun]) -> str:
    """Say why a level swings by itself, so that the anytime bound would err; empty if it does not.

    A level that is judged at what it used D runs ago is stable for steps below
    2 sin(pi / (2 (2 D + 1))) alone (docs/mathematics.md, 7a); near that it swings for long.
    """
    step = level_step(of_terms, schedule)
    if not step or is_judged_today(of_terms, schedule):
        return ""
    place = {run.seq: i for i, run in enumerate(schedule)}
    counted = [run for run in schedule if run.seq in {tally.seq for tally in of_terms}]
    lags = [place[run.seq] - place[s] - 1 for run in counted for s in run.answered if s in place]
    if not lags:
        return ""
    late = sorted(lags)[int(0.8 * (len(lags) - 1))]
    if step <= SAFE_SHARE * 2.0 * math.sin(math.pi / (2 * (2 * late + 1))):
        return ""
    return (
        f"classes come {late} runs late, and a level with the step {step:g} that counts misses at "
        'the level used then swings by itself; [conformal] adapt_rule = "today" does not'
    )


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
    for run in schedule:
        for seq, count in run.joined.items():
            most[seq] = max(most.get(seq, 0), count)
    return most


def _joined_places(run: CalibratedRun, place: Mapping[int, int]) -> tuple[int, int, int]:
    """Places of the first and after the last run whose nodes calibrate this one, and how many."""
    if not calibration_set_named(run.calibration_set).uses_recent_labels:
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
    judged = (
        []
        if tally is None
        else [
            calibrated_run for run in tally.strata for calibrated_run in run if calibrated_run.known
        ]
    )
    nodes = sum(calibrated_run.known for calibrated_run in judged)
    if not judged or tally is None or nodes != tally.counts["known"]:
        return None, None
    strata = [
        JudgedNodes(calibrated_run.effective_calibration, calibrated_run.known, alpha)
        for calibrated_run in judged
    ]
    if len(judged) == 1 and judged[0].effective_calibration == judged[0].n_calibration:
        return None, None
    rounding = math.fsum(stratum.m / nodes * _rounded_down(stratum.n, alpha) for stratum in strata)
    return equivalent_size([strata]), rounding


def _rounded_down(n: float, alpha: float) -> float:
    """By how much the share missed among n calibration nodes lies below alpha."""
    if n != int(n):
        return 0.0
    return alpha - math.floor(alpha * (n + 1) + 1e-9) / (n + 1)
