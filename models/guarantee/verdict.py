"""From counts to a verdict: whether the promise was kept, as far as known classes show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from scipy.special import betaincinv

from ringfence.models.guarantee.anytime import ANYTIME_DELTA, anytime_low, log_evidence
from ringfence.models.guarantee.law import calibration_odds, coverage_band, coverage_p_value
from ringfence.models.guarantee.stratified import (
    JudgedNodes,
    stratified_band,
    stratified_p_value,
)

Verdict = Literal["kept", "watch", "broken", "not enough known yet", "no verdict"]

BROKEN_P = 0.01
WATCH_P = 0.05
"""Of looks when all is well: coverage lies outside its band, half of them on either side."""

USUAL_BAND = "usual band"
FIXED_BAND = "band of a fixed level"
ANYTIME_BOUND = "anytime bound"
ROUNDING = 1e-9  # shares of whole nodes; a band's end counts as inside


@dataclass(frozen=True, slots=True)
class Judgement:
    """Coverage of m known nodes against the law that holds when all is well.

    low, high and p_value are valid for one look; anytime_low and anytime_p for repeated looks.
    *kept* says that coverage lies between low and high. `raised_by` names the bounds that are the
    reason for *watch* or *broken*; `reason` says why no verdict can be given.
    """

    verdict: Verdict
    coverage: float | None
    low: float
    high: float
    p_value: float
    anytime_low: float
    anytime_p: float
    needed: int
    raised_by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UsualCoverage:
    """The usual band of coverage, and the probability of so few covered when all is well.

    `no_verdict` says why the anytime bound does not hold in this mode; empty where it does.
    """

    low: float
    high: float
    p_value: float
    no_verdict: str = ""


@dataclass(frozen=True, slots=True)
class AnytimeBound:
    """A p-value over all runs and all days, and the coverage at which it would be 1 %."""

    p_value: float
    low: float


def judge_coverage(
    n: float,
    evaluated: int,
    known: int,
    covered: int,
    alpha: float,
    *,
    anytime: AnytimeBound | None = None,
    comparisons: int = 1,
    strata: Sequence[JudgedNodes] = (),
    usual: UsualCoverage | None = None,
) -> Judgement:
    """Return the verdict on `covered` of `known` nodes (`evaluated` were predicted).

    The number covered is beta-binomial when all is well; p is its lower tail at `covered`, times
    the number of `comparisons` that are made side by side (classes, groups). Below 0.01 the promise
    is broken; outside the 95 % band, on either side, it is to be watched: error rates of 1 % and
    5 % for a single look. *kept* stands over coverage inside the band alone.

    With `anytime`, the bound over all runs and all days (`anytime.over_runs`), the verdict is
    valid for daily checks: only that bound can give *broken*, the single look gives *watch*.

    `strata` are the known nodes of one run by the calibration nodes that judged them: band and p
    are then those of the sum of their laws, and `n` stands for all of them in the anytime bound.

    `usual` gives band and p if another law applies (`living_law`). Its band is cut to that of a
    fixed level with the same n and m: a level that swings is no reason to call coverage usual.

    >>> judge_coverage(n=100, evaluated=500, known=400, covered=362, alpha=0.1).verdict
    'kept'
    >>> judge_coverage(n=100, evaluated=500, known=400, covered=290, alpha=0.1).raised_by
    'usual band and anytime bound'
    >>> bound = AnytimeBound(0.3, low=0.74)
    >>> judge_coverage(100, evaluated=500, known=400, covered=315, alpha=0.1, anytime=bound).verdict
    'watch'
    >>> judge_coverage(n=100, evaluated=500, known=400, covered=395, alpha=0.1).verdict
    'watch'
    >>> judge_coverage(n=100, evaluated=500, known=1, covered=0, alpha=0.1).verdict
    'not enough known yet'
    """
    if not 0 <= covered <= known <= evaluated:
        raise ValueError(
            f"{covered} covered of {known} known of {evaluated} evaluated; needed: each at most "
            "the next"
        )
    needed = labels_needed(n, alpha)
    if known == 0:
        return Judgement("not enough known yet", None, 0.0, 1.0, 1.0, 0.0, 1.0, needed, "")
    look = _usual_of_look(n, known, covered, alpha, strata, usual)
    p = min(1.0, comparisons * look.p_value)
    if anytime is None:
        evidence = max(0.0, log_evidence(n, known, covered, alpha))
        low = anytime_low(n, known, alpha, ANYTIME_DELTA / comparisons)
        ever = AnytimeBound(min(1.0, comparisons * math.exp(-evidence)), low)
    else:
        ever = anytime
    reason = _no_verdict(n, alpha, usual)
    broken = [
        name
        for name, at, decides in (
            (USUAL_BAND, p, anytime is None),
            (ANYTIME_BOUND, ever.p_value, not reason),
        )
        if decides and at < BROKEN_P
    ]
    coverage = covered / known
    outside = _outside(coverage, look, usual)
    verdict = _verdict(bool(broken), bool(outside), bool(reason), known < needed)
    return Judgement(
        verdict,
        coverage,
        look.low,
        look.high,
        p,
        ever.low,
        ever.p_value,
        needed,
        {"broken": " and ".join(broken), "watch": outside}.get(verdict, ""),
        reason,
    )


def _usual_of_look(
    n: float,
    known: int,
    covered: int,
    alpha: float,
    strata: Sequence[JudgedNodes],
    usual: UsualCoverage | None,
) -> UsualCoverage:
    """Band and p of one look; the band is at most that of a fixed level."""
    low, high = stratified_band(strata) if strata else coverage_band(n, known, alpha)
    if usual is not None:
        if max(usual.low, low) <= min(usual.high, high):
            low, high = max(usual.low, low), min(usual.high, high)
        return replace(usual, low=low, high=high)
    p = (
        stratified_p_value(strata, covered)
        if strata
        else coverage_p_value(n, known, covered, alpha)
    )
    return UsualCoverage(low, high, p)


def _no_verdict(n: float, alpha: float, usual: UsualCoverage | None) -> str:
    """Why the anytime bound says nothing; empty where it holds.

    With too few calibration nodes every set is full at a fixed level, so that one miss breaks the
    bound; a level that adapts leaves alpha there, and misses are no sign of anything.
    """
    if usual is None:
        return ""
    if usual.no_verdict:
        return usual.no_verdict
    if calibration_odds(n, alpha)[1] <= 0:
        return f"{n:g} calibration nodes are too few for {100 * (1 - alpha):g} %"
    return ""


def _outside(coverage: float, look: UsualCoverage, usual: UsualCoverage | None) -> str:
    """The band that coverage lies outside of; empty where it lies inside."""
    if look.low - ROUNDING <= coverage <= look.high + ROUNDING:
        return ""
    if usual is not None and usual.low - ROUNDING <= coverage <= usual.high + ROUNDING:
        return FIXED_BAND
    return USUAL_BAND


def _verdict(broken: bool, outside: bool, unsound: bool, too_few: bool) -> Verdict:
    if broken:
        return "broken"
    if too_few:
        return "not enough known yet"
    if outside:
        return "watch"
    return "no verdict" if unsound else "kept"


@lru_cache(maxsize=1024)
def labels_needed(n: float, alpha: float) -> int:
    """Return how many known classes a verdict needs.

    Enough that three times the promised misses would be called broken; or, if n is too small for
    that, enough that more would hardly move the lower end of the distribution. Where n is so small
    that all sets are full, enough that a miss rate three times the promised one would show a miss.

    >>> labels_needed(100, 0.1), labels_needed(100, 0.05), labels_needed(8, 0.1)
    (30, 50, 20)
    """
    a, b = calibration_odds(n, alpha)
    sizes: tuple[int, ...] = (*range(10, 100, 10), *range(100, 2_001, 50))
    if a <= 0 or b <= 0:
        shown = (m for m in sizes if max(0.0, 1 - 3 * alpha) ** m < BROKEN_P)
        return next(shown, sizes[-1])
    usual = float(betaincinv(a, b, BROKEN_P)) - 0.05
    goal: float = max(0.0, min(1 - 3 * alpha, usual))  # alphas above a third: not one covered
    for m in sizes:
        if coverage_p_value(n, m, math.floor(goal * m), alpha) < BROKEN_P:
            return m
    return 2_000


def describe_verdict(
    judgement: Judgement, evaluated: int, known: int, alpha: float, *, runs: int = 1
) -> str:
    """Return the verdict as a person reads it; `runs` is how many the counts come from.

    >>> judged = judge_coverage(n=100, evaluated=500, known=400, covered=362, alpha=0.1)
    >>> describe_verdict(judged, 500, 400, 0.1)
    'kept: 90.5 % of 400 known nodes; 82.8 % to 95.8 % is usual for a promise of 90 %'
    >>> few = judge_coverage(n=100, evaluated=112, known=12, covered=11, alpha=0.1)
    >>> describe_verdict(few, 112, 12, 0.1)
    'not enough known yet (12 of 112; about 2 runs more)'
    """
    if judgement.verdict == "not enough known yet":
        return f"not enough known yet ({known:,} of {evaluated:,}{_more(judgement, known, runs)})"
    reason = f"; no verdict over many runs: {judgement.reason}" if judgement.reason else ""
    return (
        f"{judgement.verdict}: {100 * (judgement.coverage or 0):.1f} % of {known:,} known nodes; "
        f"{100 * judgement.low:.1f} % to {100 * judgement.high:.1f} % is usual for a promise of "
        f"{100 * (1 - alpha):g} %{_because(judgement)}{reason}"
    )


def _because(judgement: Judgement) -> str:
    """Which bound a verdict rests on, with its value where the sentence has not named it."""
    if not judgement.raised_by:
        return ""
    if (judgement.coverage or 0.0) > judgement.high:
        return f" (above the {judgement.raised_by}: sets are larger than they need be)"
    bound = f", {100 * judgement.anytime_low:.1f} %" if ANYTIME_BOUND in judgement.raised_by else ""
    return f" (raised by the {judgement.raised_by}{bound})"


def _more(judgement: Judgement, known: int, runs: int) -> str:
    missing = judgement.needed - known
    if known == 0 or missing <= 0:
        return f"; {judgement.needed} are needed"
    more = math.ceil(missing * runs / known)
    return f"; about {more} run{'s' if more > 1 else ''} more"
