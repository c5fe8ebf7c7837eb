"""From tallies to coverage rows: per run, window, model, class and group, each with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ringfence.connector.records import CoverageRow, Slice
from ringfence.connector.store.tallies import Tally, Terms
from ringfence.jobs.auditing.coverage_law import LivingCoverage, Schedules, living_coverage
from ringfence.jobs.auditing.part_law import PartSchedules, living_parts, promised_alpha
from ringfence.jobs.auditing.summary import (
    Summary,
    is_unweighted,
    summaries,
    summarise,
    unknown,
)
from ringfence.models.guarantee.anytime import over_runs
from ringfence.models.guarantee.selection import (
    LARGE_DIFFERENCE,
    MeanDifference,
    selection_bias,
    worst_case_coverage,
)
from ringfence.models.guarantee.verdict import describe_verdict, judge_coverage

NOT_PROMISED = "; the promise is for all nodes together"


NO_SCHEDULES: Schedules = {}
NO_PART_SCHEDULES: PartSchedules = {}


def coverage_rows(
    runs: Sequence[Tally],
    classes: Sequence[Tally],
    groups: Sequence[Tally],
    window: int,
    schedules: Schedules = NO_SCHEDULES,
    part_schedules: PartSchedules = NO_PART_SCHEDULES,
) -> list[CoverageRow]:
    """Return every row: of each terms in the order of its runs, that of the last run at the end.

    Runs of the same terms (model, rule, score, alpha, other options) count together wherever they
    recur, so that a changed configuration, also one that is changed back, leaves out none. Nodes of
    different runs of one model share its calibration nodes, and each is evaluated once: the law
    for all of them together is taken to be that of one run with the larger m, which is as wide as
    it can be. Where calibration lives, `schedules` say who calibrated which run (`coverage_law`),
    `part_schedules` who calibrated a class or group with a promise of its own (`part_law`).
    """
    first = [tally for tally in runs if tally.first]
    by_terms: dict[Terms, list[Tally]] = {}
    for tally in runs:
        by_terms.setdefault(tally.terms, []).append(tally)
    rows: list[CoverageRow] = []
    for terms, of_model in sorted(by_terms.items(), key=lambda item: _place(item[1][-1])):
        named = groups if of_model[-1].promise == "group" else classes
        parts = living_parts(of_model, first, named, schedules, part_schedules)
        law = living_coverage(of_model, first, schedules) if parts is None else parts.together
        of_parts = {} if parts is None else parts.by_name
        rows += [_row("run", summarise([tally]), law=law) for tally in of_model]
        if len(of_model) > 1 < window:
            spans = [of_model[max(0, end - window) : end] for end in range(2, len(of_model) + 1)]
            rows += [_row("window", summarise(span), law=law) for span in spans]
        rows += [_total(so_far, law) for so_far in summaries(of_model)]
        last_seq = of_model[-1].seq
        own = [tally for tally in classes if tally.terms == terms]
        rows += _named("class", own, last_seq, of_parts)
        own = [tally for tally in groups if tally.terms == terms]
        rows += _named("group", own, last_seq, of_parts)
    return rows


def _place(last: Tally) -> tuple[int, bool]:
    """Terms in the order of their last runs, of one run the first alpha at the end."""
    return last.seq, last.first


def last_totals(rows: Sequence[CoverageRow]) -> list[CoverageRow]:
    """Return the newest total of every terms from what `coverage_rows` returned, in its order."""
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
) -> list[CoverageRow]:
    """Rows of classes or groups; one with a promise of its own is judged as a total is.

    A class with an alpha of its own has the same sets at every configured alpha: one row tells all.
    """
    by_name: dict[str, list[Tally]] = {}
    for tally in tallies:
        by_name.setdefault(tally.name, []).append(tally)
    comparisons = max(1, len(by_name))
    rows = []
    for name, of_name in sorted(by_name.items()):
        own = promised_alpha(slice_, of_name[-1])
        if own is not None and own != of_name[-1].alpha and not of_name[-1].first:
            continue
        law = None if own is None else laws.get(name)
        row = _row(slice_, summarise(of_name), comparisons=comparisons, own=own, law=law)
        rows.append(replace(row, seq=seq, name=name))
    return rows


def _total(so_far: Summary, law: LivingCoverage | None) -> CoverageRow:
    return _row("total", so_far, anytime_p=_anytime(so_far, so_far.alpha), law=law)


def _anytime(runs: Summary, alpha: float) -> float:
    """The p-value over all runs and all looks."""
    return over_runs(runs.size, runs.known, runs.covered, alpha).p_value


def _row(
    slice_: Slice,
    runs: Summary,
    *,
    anytime_p: float | None = None,
    comparisons: int = 1,
    own: float | None = None,
    law: LivingCoverage | None = None,
) -> CoverageRow:
    """`own` is the alpha of a class or group that has a promise of its own."""
    tally = runs.tally
    counts: dict[str, Any] = dict(tally.counts)
    evaluated, known = counts["evaluated"], counts["known"]
    promised = slice_ not in {"class", "group"} or own is not None
    alpha = runs.alpha if own is None else own
    if own is not None:
        anytime_p = min(1.0, comparisons * _anytime(runs, own))
    judgement = judge_coverage(
        runs.size, evaluated, known, counts["covered"], alpha,
        anytime_p=anytime_p, comparisons=comparisons, strata=runs.judged,
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
        alpha=tally.alpha if own is None else own,
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
        own_promise=own is not None,
        mean_size_naive=None
        if tally.classes_naive is None
        else round(tally.classes_naive / evaluated, 9),
    )


def _known_alone(bias: float | None, differences: Sequence[MeanDifference], verdict: str) -> str:
    """That a verdict speaks of known nodes alone, where these differ from the rest."""
    if bias is None or bias <= LARGE_DIFFERENCE or verdict == "not enough known yet":
        return ""
    names = [one.name for one in differences if abs(one.d) > LARGE_DIFFERENCE]
    return f"; true of nodes whose class is known, which differ from the rest in {', '.join(names)}"


def _worst_case(tally: Tally) -> str:
    """What holds whoever the unknown nodes are."""
    missing = unknown(tally)
    if not missing or not tally.counts["known"]:
        return ""
    worst = worst_case_coverage(tally.counts["evaluated"], tally.counts["covered"])
    return f"; {100 * worst:.1f} % if all {missing:,} nodes of unknown class were missed"
