"""The laws of classes or groups that have a promise of their own, and of all nodes under it.

Each part of the nodes (class, group) is judged by calibration nodes of its own, which live as those
of all nodes do. All parts are drawn side by side (`models.guarantee.living_law.simulate_parts`):
classes with a level each, groups with the one level that the misses of all nodes move. What all
nodes together come to is the sum of the parts, path by path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ringfence.connector.records import Slice
from ringfence.connector.store.calibration.schedule import CalibratedRun
from ringfence.connector.store.tallies import Tally
from ringfence.jobs.auditing.coverage_law import (
    LivingCoverage,
    Schedules,
    is_judged_today,
    level_step,
    living_runs,
    restrict_law,
    uses_recent_labels,
)
from ringfence.models.calibration.sets.frozen_set import FROZEN
from ringfence.models.guarantee.living_law import LivingPart, simulate_parts, sum_of_laws
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.registry import promise_named

PartSchedules = Mapping[tuple[str, str], Sequence[CalibratedRun]]
"""Model and class or group -> the calibration of its promise in each run of the model."""

MAX_PARTS = 30  # drawn side by side; with more classes or groups the frozen law is used
MAX_PART_RUNS = 60_000  # parts times runs, for the same reason


@dataclass(frozen=True, slots=True)
class GroupLaws:
    """The law of every part by its name, and of all nodes together."""

    by_name: Mapping[str, LivingCoverage]
    together: LivingCoverage


def living_parts(
    of_terms: Sequence[Tally],
    every_run: Sequence[Tally],
    named: Sequence[Tally],
    schedules: Schedules,
    part_schedules: PartSchedules,
) -> GroupLaws | None:
    """Return the laws of runs that share the same settings; None where the frozen law holds.

    That is where calibration is frozen, and where there are more than MAX_PARTS classes or groups.

    Args:
        of_terms: the runs that are counted together, oldest first.
        every_run: all runs of the model with their known nodes, whatever their terms.
        named: counts of all classes or groups, of all runs and terms.
        schedules: the calibration of each model's runs.
        part_schedules: that of each class or group.
    """
    last = of_terms[-1]
    whole = schedules.get(last.model, ())
    kind = promise_named(last.promise)
    slice_ = kind.slice
    if slice_ is None or not uses_recent_labels(last) or not whole:
        return None
    counted = _by_name(slice_, of_terms, named)
    parts = {name: part_schedules.get((last.model, name), ()) for name in counted}
    if (
        not counted
        or len(parts) > MAX_PARTS
        or (len(parts) + 1) * len(whole) > MAX_PART_RUNS
        or not _is_on_record(whole, of_terms)
        or not all(_is_on_record(parts[n], _of_terms(counted[n], last)) for n in parts)
    ):
        return None
    every = {tally.seq: tally for tally in every_run if tally.model == last.model}
    every |= {tally.seq: tally for tally in of_terms}
    drawn = [
        _part(schedule, {t.seq: t for t in counted[name]}, _alpha(slice_, counted[name], last))
        for name, schedule in parts.items()
    ]
    drawn.append(_the_rest(drawn, every, whole, part_schedules, last))
    laws = simulate_parts(
        drawn,
        level_step(of_terms, whole),
        seed=len(whole),
        answered=None if kind.per_class else _answered(whole, every),
        judged_today=is_judged_today(of_terms, whole),
    )
    return GroupLaws(
        {
            name: restrict_law(law, _of_terms(counted[name], last), whole)
            for name, law in zip(parts, laws, strict=False)
        },
        restrict_law(sum_of_laws(laws), of_terms, whole),
    )


def promised_alpha(slice_: Slice, tally: Tally) -> float | None:
    """Return the largest share of a class or group that may be missed; None without a promise.

    Classes that the model never saw have no promise, nor have groups by another property.
    """
    kind = promise_named(tally.promise)
    if kind.slice != slice_:
        return None
    options = PromiseOptions.recorded(json.loads(tally.options))
    return kind.alpha_of_part(tally.name, tally.alpha, options, seen=not tally.counts["unseen"])


def _by_name(
    slice_: Slice, of_terms: Sequence[Tally], named: Sequence[Tally]
) -> dict[str, list[Tally]]:
    """The counts of every promised part that has nodes in these runs, by run.

    Those of other runs of the model are here too, at their first alpha: their nodes calibrate and
    move the level as well.
    """
    last = of_terms[-1]
    promised = {
        t.name for t in named if t.terms == last.terms and promised_alpha(slice_, t) is not None
    }
    tallies: dict[str, dict[int, Tally]] = {name: {} for name in sorted(promised)}
    for tally in named:
        if tally.name in promised and tally.model == last.model and tally.first:
            tallies[tally.name][tally.seq] = tally
    for tally in named:
        if tally.name in promised and tally.terms == last.terms:
            tallies[tally.name][tally.seq] = tally
    return {name: [by_run[seq] for seq in sorted(by_run)] for name, by_run in tallies.items()}


def _of_terms(counted: Sequence[Tally], last: Tally) -> list[Tally]:
    return [tally for tally in counted if tally.terms == last.terms]


def _alpha(slice_: Slice, counted: Sequence[Tally], last: Tally) -> float:
    return promised_alpha(slice_, _of_terms(counted, last)[-1]) or last.alpha


def _is_on_record(schedule: Sequence[CalibratedRun], counted: Sequence[Tally]) -> bool:
    """Whether the schedule has the calibration of every run that is counted."""
    return {run.seq for run in schedule if run.is_own}.issuperset(tally.seq for tally in counted)


def _part(
    schedule: Sequence[CalibratedRun], known: Mapping[int, Tally], alpha: float
) -> LivingPart:
    runs = living_runs(schedule, known, alpha)
    return LivingPart(runs, max(run.training for run in runs), alpha)


def _the_rest(
    parts: Sequence[LivingPart],
    every: Mapping[int, Tally],
    whole: Sequence[CalibratedRun],
    part_schedules: PartSchedules,
    last: Tally,
) -> LivingPart:
    """The known nodes of no part: without the property, or of a class the model never saw.

    The first are a group of their own; the law takes the others for judged by frozen calibration.
    """
    kind, options = promise_named(last.promise), PromiseOptions.recorded(json.loads(last.options))
    without = kind.name_of_rest(options)
    schedule = (part_schedules.get((last.model, without)) if without else None) or [
        replace(run, calibration_set=FROZEN.name, joined={}, answered=()) for run in whole
    ]
    known = {}
    for place, run in enumerate(whole):
        tally = every.get(run.seq)
        if run.is_own and tally is not None:
            left = tally.counts["known"] - sum(part.runs[place].known for part in parts)
            known[run.seq] = replace(
                tally, counts={**tally.counts, "known": max(0, left)}, strata=()
            )
    return _part(schedule, known, last.alpha)


def _answered(whole: Sequence[CalibratedRun], every: Mapping[int, Tally]) -> list[tuple[int, ...]]:
    """Places of the runs that had moved the level of all nodes before each run."""
    place = {run.seq: i for i, run in enumerate(whole)}
    asked = {seq for seq, tally in every.items() if tally.counts["known"]}
    return [tuple(place[s] for s in run.answered if s in place and s in asked) for run in whole]
