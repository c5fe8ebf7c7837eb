"""From counts to a verdict: was the promise kept, as far as anyone can know yet?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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

Verdict = Literal["kept", "watch", "broken", "not enough known yet"]

BROKEN_P = 0.01
WATCH_P = 0.05
USUAL_BAND = "usual band"
ANYTIME_BOUND = "anytime bound"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Coverage of m known nodes against the law that holds when all is well.

    low, high and p_value are right for one look; anytime_low and anytime_p however often one
    looks. `raised_by` names which of the two are the reason for *watch* or *broken*.
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


@dataclass(frozen=True, slots=True)
class UsualCoverage:
    """The usual band of coverage, and the probability of so few covered when all is well."""

    low: float
    high: float
    p_value: float


def judge_coverage(
    n: float,
    evaluated: int,
    known: int,
    covered: int,
    alpha: float,
    *,
    anytime_p: float | None = None,
    comparisons: int = 1,
    strata: Sequence[JudgedNodes] = (),
    usual: UsualCoverage | None = None,
) -> Judgement:
    """Return the verdict on `covered` of `known` nodes (`evaluated` were predicted).

    The number covered is beta-binomial when all is well; p is its lower tail at `covered`, times
    the number of `comparisons` that are made side by side (classes, groups). Below 0.01 the promise
    is broken, below 0.05 it is to be watched: errors of 1 and 5 in 100 for who looks once.

    `anytime_p`, the p-value over all runs and all days (`anytime.over_runs`), makes the verdict
    one for who looks daily: only that can say *broken*, the single look can say *watch*.

    `strata` are the known nodes of one run by the calibration nodes that judged them: band and p
    are then those of the sum of their laws, and `n` stands for all of them in the anytime bound.

    `usual` gives band and p where the law is another one (`living_law`).

    >>> judge_coverage(n=100, evaluated=500, known=400, covered=362, alpha=0.1).verdict
    'kept'
    >>> judge_coverage(n=100, evaluated=500, known=400, covered=290, alpha=0.1).raised_by
    'usual band and anytime bound'
    >>> judge_coverage(100, evaluated=500, known=400, covered=315, alpha=0.1, anytime_p=0.3).verdict
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
    if usual is not None:
        low, high = usual.low, usual.high
        p = min(1.0, comparisons * usual.p_value)
    elif strata:
        low, high = stratified_band(strata)
        p = min(1.0, comparisons * stratified_p_value(strata, covered))
    else:
        low, high = coverage_band(n, known, alpha)
        p = min(1.0, comparisons * coverage_p_value(n, known, covered, alpha))
    own = min(1.0, comparisons * math.exp(-max(0.0, log_evidence(n, known, covered, alpha))))
    ever = own if anytime_p is None else anytime_p
    verdict = _verdict(p, ever, daily=anytime_p is not None, known=known, needed=needed)
    return Judgement(
        verdict,
        covered / known,
        low,
        high,
        p,
        anytime_low(n, known, alpha, ANYTIME_DELTA / comparisons),
        ever,
        needed,
        _raised_by(verdict, p, ever),
    )


def _verdict(p: float, ever: float, *, daily: bool, known: int, needed: int) -> Verdict:
    worst = ever if daily else min(p, ever)
    if worst < BROKEN_P:
        return "broken"
    if known < needed:
        return "not enough known yet"
    return "watch" if min(p, ever) < WATCH_P else "kept"


def _raised_by(verdict: Verdict, p: float, ever: float) -> str:
    if verdict not in {"watch", "broken"}:
        return ""
    level = BROKEN_P if verdict == "broken" and min(p, ever) < BROKEN_P else WATCH_P
    return " and ".join(name for name, at in ((USUAL_BAND, p), (ANYTIME_BOUND, ever)) if at < level)


@lru_cache(maxsize=1024)
def labels_needed(n: float, alpha: float) -> int:
    """Return how many known classes a verdict needs.

    So many that three times the promised misses would be called broken; or, where n is too small
    for that ever to be, so many that more would hardly move the lower end of the law.

    >>> labels_needed(100, 0.1), labels_needed(100, 0.05), labels_needed(20, 0.02)
    (30, 50, 1)
    """
    a, b = calibration_odds(n, alpha)
    if a <= 0 or b <= 0:
        return 1
    usual = float(betaincinv(a, b, BROKEN_P)) - 0.05
    goal: float = max(0.0, min(1 - 3 * alpha, usual))  # alphas above a third: not one covered
    sizes: tuple[int, ...] = (*range(10, 100, 10), *range(100, 2_001, 50))
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
    by = f" (raised by the {judgement.raised_by})" if judgement.raised_by else ""
    return (
        f"{judgement.verdict}: {100 * (judgement.coverage or 0):.1f} % of {known:,} known nodes; "
        f"{100 * judgement.low:.1f} % to {100 * judgement.high:.1f} % is usual for a promise of "
        f"{100 * (1 - alpha):g} %{by}"
    )


def _more(judgement: Judgement, known: int, runs: int) -> str:
    missing = judgement.needed - known
    if known == 0 or missing <= 0:
        return f"; {judgement.needed} are needed"
    more = math.ceil(missing * runs / known)
    return f"; about {more} run{'s' if more > 1 else ''} more"
