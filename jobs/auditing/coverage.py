"""From tallies to coverage rows: per run, window, model, class and group, each with a verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ringfence.connector.records import CoverageRow, Slice
from ringfence.connector.store.tallies import QUANTITIES, Tally, Terms, merged
from ringfence.connector.store.thresholds.strata import Stratum
from ringfence.jobs.auditing.coverage_law import LivingCoverage, Schedules, living_coverage
from ringfence.models.guarantee.anytime import over_runs
from ringfence.models.guarantee.selection import (
    LARGE_DIFFERENCE,
    MeanDifference,
    Moments,
    difference_within_runs,
    selection_bias,
    worst_case_coverage,
)
from ringfence.models.guarantee.stratified import JudgedNodes, equivalent_size
from ringfence.models.guarantee.verdict import describe_verdict, judge_coverage

NOT_PROMISED = "; the promise is for all nodes together"


NO_SCHEDULES: Schedules = {}


def coverage_rows(
    runs: Sequence[Tally],
    classes: Sequence[Tally],
    groups: Sequence[Tally],
    window: int,
    schedules: Schedules = NO_SCHEDULES,
) -> list[CoverageRow]:
    """Return every row: of each terms in the order of its runs, that of the last run at the end.

    Runs of the same terms (model, rule, score, alpha, other options) count together wherever they
    recur, so that a changed configuration, also one that is changed back, leaves out none. Nodes of
    different runs of one model share its calibration nodes, and each is evaluated once: the law
    for all of them together is taken to be that of one run with the larger m, which is as wide as
    it can be. Where calibration lives, `schedules` say who calibrated which run (`coverage_law`).
    """
    first = [tally for tally in runs if tally.first]
    by_terms: dict[Terms, list[Tally]] = {}
    for tally in runs:
        by_terms.setdefault(tally.terms, []).append(tally)
    rows: list[CoverageRow] = []
    for terms, of_model in sorted(by_terms.items(), key=lambda item: _place(item[1][-1])):
        law = living_coverage(of_model, first, schedules)
        rows += [_row("run", [tally], law=law) for tally in of_model]
        if len(of_model) > 1 < window:
            spans = [of_model[max(0, end - window) : end] for end in range(2, len(of_model) + 1)]
            rows += [_row("window", span, law=law) for span in spans]
        rows += [_total(of_model[:end], law) for end in range(1, len(of_model) + 1)]
        last_seq = of_model[-1].seq
        rows += _named("class", [tally for tally in classes if tally.terms == terms], last_seq)
        rows += _named("group", [tally for tally in groups if tally.terms == terms], last_seq)
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


def _named(slice_: Slice, tallies: Sequence[Tally], seq: int) -> list[CoverageRow]:
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
        row = _row(slice_, of_name, comparisons=comparisons, own=own)
        rows.append(replace(row, seq=seq, name=name))
    return rows


def promised_alpha(slice_: Slice, tally: Tally) -> float | None:
    """Return the share that a class or group was promised to be missed at most; None without.

    Classes that the model never saw have no promise, nor have groups by another property.
    """
    options = json.loads(tally.options)
    if slice_ == "class" and tally.promise == "class" and not tally.counts["unseen"]:
        return float(options.get("classes", {}).get(tally.name, tally.alpha))
    if slice_ == "group" and tally.promise == "group":
        return tally.alpha if tally.name.startswith(f"{options['group']}=") else None
    return None


def _mean_alpha(tally: Tally) -> float:
    """The share of the known nodes that may be missed, where classes have alphas of their own."""
    own = json.loads(tally.options).get("classes", {}) if tally.promise == "class" else {}
    if not own or _judged(tally) is None:
        return tally.alpha
    strata = [one for run in tally.strata for one in run]
    missed = sum(one.known * own.get(one.class_, tally.alpha) for one in strata)
    return float(round(missed / sum(one.known for one in strata), 3))


def _total(runs: Sequence[Tally], law: LivingCoverage | None) -> CoverageRow:
    ever = _anytime(runs, _mean_alpha(merged(runs)))
    return _row("total", runs, anytime_p=ever, law=law)


def _anytime(runs: Sequence[Tally], alpha: float) -> float:
    """The p-value over all runs and all looks."""
    known = [tally.counts["known"] for tally in runs]
    covered = [tally.counts["covered"] for tally in runs]
    return over_runs(_size(merged(runs)), known, covered, alpha).p_value


def _size(tally: Tally) -> float:
    """The n of the law: calibration nodes, or what they are worth where weights or bands divide.

    Runs that had several thresholds, or different calibration nodes, are worth as many nodes as
    one threshold would need for the same spread, at most.
    """
    judged = _judged(tally)
    if judged is not None:
        return equivalent_size(judged)
    return float(tally.n_calibration) if _is_unweighted(tally) else tally.effective_calibration


def _judged(tally: Tally) -> list[list[JudgedNodes]] | None:
    """The known nodes of each run by the threshold that judged them; None where some have none.

    Runs of older versions have no thresholds on record, a class that the model never saw has none
    under a promise per class.
    """
    runs = [
        [
            # what adapts is promised at alpha: the level in force is how that is reached
            JudgedNodes(_worth(one), one.known, _promised_level(tally, one))
            for one in run
        ]
        for run in tally.strata
    ]
    known = sum(one.m for run in runs for one in run)
    return runs if known and known == tally.counts["known"] else None


def _promised_level(tally: Tally, stratum: Stratum) -> float:
    if not tally.adapt:
        return stratum.level
    own = json.loads(tally.options).get("classes", {}) if tally.promise == "class" else {}
    return float(own.get(stratum.class_, tally.alpha))


def _worth(stratum: Stratum) -> float:
    n, worth = stratum.n_calibration, stratum.effective_calibration
    return float(n) if worth == n else worth


def _row(
    slice_: Slice,
    parts: Sequence[Tally],
    *,
    anytime_p: float | None = None,
    comparisons: int = 1,
    own: float | None = None,
    law: LivingCoverage | None = None,
) -> CoverageRow:
    """`own` is the alpha of a class or group that has a promise of its own."""
    tally = merged(parts)
    counts: dict[str, Any] = dict(tally.counts)
    evaluated, known = counts["evaluated"], counts["known"]
    promised = slice_ not in {"class", "group"} or own is not None
    alpha = _mean_alpha(tally) if own is None else own
    if own is not None:
        anytime_p = min(1.0, comparisons * _anytime(parts, own))
    judged = _judged(tally) if len(parts) == 1 else None
    judgement = judge_coverage(
        _size(tally), evaluated, known, counts["covered"], alpha,
        anytime_p=anytime_p, comparisons=comparisons, strata=judged[0] if judged else (),
        usual=None if law is None else law.usual(parts, counts["covered"]),
    )  # fmt: skip
    if not promised and judgement.verdict == "broken":  # not promised: a reason to look closer
        judgement = replace(judgement, verdict="watch")
    differences = _differences(parts)
    bias, bias_words = selection_bias(*_comparable(parts), differences)
    words = describe_verdict(judgement, evaluated, known, alpha, runs=len(parts))
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
        exact=promised and len(parts) == 1 and _is_unweighted(tally),
        raised_by=judgement.raised_by,
        verdict=judgement.verdict,
        words=words
        + _known_alone(bias, differences, judgement.verdict)
        + (_worst_case(tally) if promised else NOT_PROMISED),
        first_alpha=tally.first,
        own_promise=own is not None,
        mean_size_naive=None
        if tally.classes_naive is None
        else round(tally.classes_naive / evaluated, 9),
    )


def _comparable(parts: Sequence[Tally]) -> tuple[int, int]:
    """How many known and unknown nodes there are in runs that have both."""
    sides = [(part.counts["known"], _unknown(part)) for part in parts]
    both = [(known, unknown) for known, unknown in sides if known and unknown]
    return sum(known for known, _ in both), sum(unknown for _, unknown in both)


def _unknown(tally: Tally) -> int:
    return tally.counts["evaluated"] - tally.counts["known"]


def _differences(parts: Sequence[Tally]) -> list[MeanDifference]:
    names = {"degree": "degree", "size": "set size", "top_p": "p-value of the likeliest class"}
    found = [
        difference_within_runs(names[quantity], [_sides(part, quantity) for part in parts])
        for quantity in QUANTITIES
    ]
    return [difference for difference in found if difference is not None]


def _sides(tally: Tally, quantity: str) -> tuple[Moments, Moments]:
    """One quantity of the known and of the unknown nodes of a run."""
    sums = tally.sums
    known = Moments(
        tally.counts["known"], sums[f"{quantity}_known"], sums[f"{quantity}_known_squared"]
    )
    total, squares = sums[f"{quantity}_all"], sums[f"{quantity}_all_squared"]
    return known, Moments(_unknown(tally), total - known.total, squares - known.squares)


def _known_alone(bias: float | None, differences: Sequence[MeanDifference], verdict: str) -> str:
    """That a verdict speaks of known nodes alone, where these differ from the rest."""
    if bias is None or bias <= LARGE_DIFFERENCE or verdict == "not enough known yet":
        return ""
    names = [one.name for one in differences if abs(one.d) > LARGE_DIFFERENCE]
    return f"; true of nodes whose class is known, which differ from the rest in {', '.join(names)}"


def _worst_case(tally: Tally) -> str:
    """What holds whoever the unknown nodes are."""
    unknown = _unknown(tally)
    if not unknown or not tally.counts["known"]:
        return ""
    worst = worst_case_coverage(tally.counts["evaluated"], tally.counts["covered"])
    return f"; {100 * worst:.1f} % if all {unknown:,} nodes of unknown class were missed"


def _is_unweighted(tally: Tally) -> bool:
    """Whether all calibration nodes of a threshold counted alike, and the level stood still.

    The law of one run is then exact; over several runs, which share calibration nodes, it errs to
    the side of too wide a band.
    """
    alike = tally.effective_calibration == tally.n_calibration
    return tally.rule in {"NodeEx", "auto"} and alike and not tally.adapt
