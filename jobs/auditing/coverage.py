"""From tallies to coverage rows: per run, window, model, class and group, each with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

from ringfence.connector.records import (
    NAMED_SLICES,
    CoverageRow,
    Slice,
)
from ringfence.connector.store.alarms import CoverageDecline
from ringfence.connector.store.tallies import Tally, Terms
from ringfence.jobs.auditing.coverage_law import LivingCoverage, Schedules, living_coverage
from ringfence.jobs.auditing.decline_evidence import find_decline
from ringfence.jobs.auditing.group_coverage_law import PartSchedules, living_parts, promised_alpha
from ringfence.jobs.auditing.summary import (
    Summary,
    is_unweighted,
    summaries,
    summarise,
    unknown,
)
from ringfence.jobs.auditing.unsettled_rows import waiting_runs, without_unsettled
from ringfence.models.guarantee.anytime import ANYTIME_DELTA, bound_over_runs, over_runs
from ringfence.models.guarantee.selection import (
    LARGE_DIFFERENCE,
    MeanDifference,
    selection_bias,
    worst_case_coverage,
)
from ringfence.models.guarantee.verdict import AnytimeBound, describe_verdict, judge_coverage
from ringfence.models.promise.registry import promise_named

NOT_PROMISED = "; the promise is for all nodes together"


NONE_UNSETTLED: Mapping[int, int] = {}
NO_SCHEDULES: Schedules = {}
NO_PART_SCHEDULES: PartSchedules = {}


class Judge(Protocol):
    """Makes the row of some runs."""

    def __call__(self, runs: Summary, *, law: LivingCoverage | None) -> CoverageRow:
        """Return the row, judged by the law where it is simulated."""


def coverage_rows(
    runs: Sequence[Tally],
    classes: Sequence[Tally],
    groups: Sequence[Tally],
    window: int,
    schedules: Schedules = NO_SCHEDULES,
    part_schedules: PartSchedules = NO_PART_SCHEDULES,
    unsettled: Mapping[int, int] = NONE_UNSETTLED,
    declines: list[CoverageDecline] | None = None,
) -> list[CoverageRow]:
    """Return every row: by terms, in the order of their runs, with the last run's terms at the end.

    Runs of the same terms (model, rule, score, alpha, other options) count together wherever they
    recur, so that a changed configuration, also one that is changed back, leaves out none. Nodes of
    different runs of one model share its calibration nodes, and each is evaluated once: the law for
    all of them together is taken to be that of one run with the larger m, which is as wide as it
    can be. If known nodes join the calibration, `schedules` has the calibration nodes of each run
    (`coverage_law`), `part_schedules` those of classes and groups with a promise of their own
    (`group_coverage_law`).

    `unsettled` are runs of which only early classes are known, with how many of their known nodes
    are selected: they are not judged, nor do they count in the verdict over many runs or on a group
    (`unsettled_rows`). `declines` takes the
    evidence for a decline under each terms (`decline_evidence`).
    """
    first = [tally for tally in runs if tally.first]
    by_terms: dict[Terms, list[Tally]] = {}
    for tally in runs:
        by_terms.setdefault(tally.terms, []).append(tally)
    rows: list[CoverageRow] = []
    for terms, of_model in sorted(by_terms.items(), key=lambda item: _place(item[1][-1])):
        named = {"class": classes, "group": groups}
        promised = named.get(promise_named(of_model[-1].promise).slice or "", ())
        parts = living_parts(of_model, first, promised, schedules, part_schedules)
        law = living_coverage(of_model, first, schedules) if parts is None else parts.together
        of_parts = {} if parts is None else parts.by_name
        if declines is not None:
            declines += find_decline(of_model, law, unsettled)
        rows += _rows_of_runs(of_model, window, law, unsettled)
        last_seq = of_model[-1].seq
        for slice_ in NAMED_SLICES:
            of_slice = [tally for tally in named[slice_] if tally.terms == terms]
            # a class is early or late as a whole; who is selected is counted by run, not by group
            early = dict.fromkeys(unsettled, 0) if slice_ == "group" else NONE_UNSETTLED
            rows += _named(slice_, of_slice, last_seq, of_parts, early)
    return rows


def _rows_of_runs(
    of_model: Sequence[Tally], window: int, law: LivingCoverage | None, unsettled: Mapping[int, int]
) -> list[CoverageRow]:
    """Rows of runs, windows and totals of the same terms."""

    def judge(slice_: Slice, span: Sequence[Tally], so_far: Summary) -> CoverageRow:
        of_slice = partial(_judged, slice_)
        return _of_settled(of_slice(so_far, law=law), of_slice, span, law, unsettled)

    rows = [judge("run", [tally], summarise([tally])) for tally in of_model]
    if len(of_model) > 1 < window:
        spans = [of_model[max(0, end - window) : end] for end in range(2, len(of_model) + 1)]
        rows += [judge("window", span, summarise(span)) for span in spans]
    totals = enumerate(summaries(of_model), start=1)
    return rows + [judge("total", of_model[:end], so_far) for end, so_far in totals]


def _of_settled(
    row: CoverageRow,
    judge: Judge,
    span: Sequence[Tally],
    law: LivingCoverage | None,
    unsettled: Mapping[int, int],
) -> CoverageRow:
    """Return a row over `span` with the verdict of its settled runs, where others wait."""
    if not waiting_runs(span, unsettled):
        return row
    settled = [tally for tally in span if tally.seq not in unsettled]
    of_settled = None if law is None else law.among([tally.seq for tally in settled])
    judged = judge(summarise(settled), law=of_settled) if settled else None
    return without_unsettled(row, judged, span, unsettled)


def _judged(slice_: Slice, runs: Summary, *, law: LivingCoverage | None) -> CoverageRow:
    """A row of runs; one of all runs so far is judged by the bound for repeated looks."""
    anytime = _anytime(runs, runs.alpha) if slice_ == "total" else None
    return _row(slice_, runs, anytime=anytime, law=law)


def _place(last: Tally) -> tuple[int, bool]:
    """Terms in the order of their last runs, of one run the first alpha at the end."""
    return last.seq, last.first


def last_totals(rows: Sequence[CoverageRow]) -> list[CoverageRow]:
    """Return the newest total of each set of terms from `coverage_rows`' result, in its order."""
    ends = [a for a, b in pairwise(rows) if a.slice == "total" != b.slice]
    return [*ends, *(row for row in rows[-1:] if row.slice == "total")]


def without_group(evaluated_by_group: Mapping[str, int], evaluated: int) -> list[str]:
    """Say for each property how many of the evaluated nodes have none, where some have none.

    >>> groups = {"region=a": 40, "region=b": 50}
    >>> without_group(groups, 90), without_group(groups, 100)[0][:56]
    ([], '10 of 100 evaluated nodes have no region: they lack the ')
    """
    by_property: dict[str, int] = {}
    for group, count in evaluated_by_group.items():
        name = group.partition("=")[0]
        by_property[name] = by_property.get(name, 0) + count
    return [
        f"{evaluated - count:,} of {evaluated:,} evaluated nodes have no {name}: they lack the "
        "property, or were audited before [audit] groups named it, which counts for later runs only"
        for name, count in by_property.items()
        if count < evaluated
    ]


def _named(
    slice_: Slice,
    tallies: Sequence[Tally],
    seq: int,
    laws: Mapping[str, LivingCoverage],
    unsettled: Mapping[int, int],
) -> list[CoverageRow]:
    """Rows of classes or groups; one with a promise of its own is judged as a total is.

    A class with an alpha of its own has the same sets at every configured alpha: one row is enough.
    `unsettled` are runs that do not count in the verdicts.
    """
    by_name: dict[str, list[Tally]] = {}
    for tally in tallies:
        by_name.setdefault(tally.name, []).append(tally)
    comparisons = max(1, len(by_name))
    rows = []
    for name, of_name in sorted(by_name.items()):
        own_alpha = promised_alpha(slice_, of_name[-1])
        if own_alpha is not None and own_alpha != of_name[-1].alpha and not of_name[-1].first:
            continue
        law = None if own_alpha is None else laws.get(name)
        judge = partial(_row, slice_, comparisons=comparisons, own_alpha=own_alpha)
        row = judge(summarise(of_name), law=law)
        row = _of_settled(row, judge, of_name, law, unsettled)
        rows.append(replace(row, seq=seq, name=name))
    return rows


def _anytime(runs: Summary, alpha: float, comparisons: int = 1) -> AnytimeBound:
    """The p-value over all runs and all looks, and the coverage below which it is under 1 %."""
    ever = over_runs(runs.size, runs.known, runs.covered, alpha)
    p_value, delta = min(1.0, comparisons * ever.p_value), ANYTIME_DELTA / comparisons
    since = ever.since if p_value < ANYTIME_DELTA else 0
    low = bound_over_runs(runs.size, runs.known, runs.covered, alpha, since, delta)
    return AnytimeBound(p_value, low)


def _row(
    slice_: Slice,
    runs: Summary,
    *,
    anytime: AnytimeBound | None = None,
    comparisons: int = 1,
    own_alpha: float | None = None,
    law: LivingCoverage | None = None,
) -> CoverageRow:
    """`own_alpha` is the alpha of a class or group that has a promise of its own."""
    tally = runs.tally
    counts: dict[str, Any] = dict(tally.counts)
    evaluated, known = counts["evaluated"], counts["known"]
    promised = slice_ not in NAMED_SLICES or own_alpha is not None
    alpha = runs.alpha if own_alpha is None else own_alpha
    if own_alpha is not None:
        anytime = _anytime(runs, own_alpha, comparisons)
    judgement = judge_coverage(
        runs.size, evaluated, known, counts["covered"], alpha,
        anytime=anytime, comparisons=comparisons, strata=runs.judged,
        usual=None if law is None else law.usual(runs, counts["covered"]),
    )  # fmt: skip
    if not promised and judgement.verdict == "broken":  # not promised: a reason to look closer
        judgement = replace(judgement, verdict="watch")
    bias, bias_words = selection_bias(*runs.comparable, runs.differences)
    words = describe_verdict(judgement, evaluated, known, alpha, runs=runs.runs)
    return CoverageRow(
        seq=tally.seq,
        slice=slice_,
        name="",
        model=tally.model,
        alpha=tally.alpha if own_alpha is None else own_alpha,
        **counts,
        coverage=judgement.coverage,
        low=judgement.low,
        high=judgement.high,
        p_value=judgement.p_value,
        anytime_low=judgement.anytime_low,
        anytime_p=judgement.anytime_p,
        mean_size=tally.sums["size_all"] / evaluated,
        mean_degree=tally.sums["degree_all"] / evaluated,
        bias=bias,
        bias_words=bias_words,
        exact=promised and runs.runs == 1 and is_unweighted(tally),
        raised_by=judgement.raised_by,
        verdict=judgement.verdict,
        words=words
        + _known_alone(bias, runs.differences, judgement.verdict)
        + (_worst_case(tally) if promised else NOT_PROMISED),
        first_alpha=tally.first,
        own_promise=own_alpha is not None,
        mean_size_naive=None
        if tally.classes_naive is None
        else round(tally.classes_naive / evaluated, 9),
    )


def _known_alone(bias: float | None, differences: Sequence[MeanDifference], verdict: str) -> str:
    """A clause that a verdict is only about known nodes, if these differ from the rest."""
    if bias is None or bias <= LARGE_DIFFERENCE or verdict == "not enough known yet":
        return ""
    names = [difference.name for difference in differences if abs(difference.d) > LARGE_DIFFERENCE]
    return f"; true of nodes whose class is known, which differ from the rest in {', '.join(names)}"


def _worst_case(tally: Tally) -> str:
    """A clause on the coverage that holds whichever nodes are unknown."""
    missing = unknown(tally)
    if not missing or not tally.counts["known"]:
        return ""
    worst = worst_case_coverage(tally.counts["evaluated"], tally.counts["covered"])
    return f"; {100 * worst:.1f} % if all {missing:,} nodes of unknown class were missed"
