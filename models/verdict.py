"""From counts to a verdict in words: was the promise kept, as far as anyone can know yet?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ringfence.models.guarantee import coverage_band, coverage_p_value

Verdict = Literal["kept", "watch", "broken", "not enough known yet"]

BROKEN = 0.01
WATCH = 0.05


@dataclass(frozen=True, slots=True)
class Judgement:
    """Coverage of m known nodes against the law that holds when all is well."""

    verdict: Verdict
    coverage: float | None
    low: float
    high: float
    p_value: float


def judge(n: float, evaluated: int, known: int, covered: int, alpha: float) -> Judgement:
    """Return the verdict on `covered` of `known` nodes (`evaluated` were predicted).

    The number covered is beta-binomial when all is well; p is its lower tail at `covered`. Below
    0.01 the promise is broken, below 0.05 it is to be watched. Where even no hit at all would not
    get below 0.01, there is not enough known yet: no data could break the promise.

    >>> judge(n=100, evaluated=500, known=400, covered=362, alpha=0.1).verdict
    'kept'
    >>> judge(n=100, evaluated=500, known=400, covered=300, alpha=0.1).verdict
    'broken'
    >>> judge(n=100, evaluated=500, known=1, covered=0, alpha=0.1).verdict
    'not enough known yet'
    """
    if not 0 <= covered <= known <= evaluated:
        raise ValueError(
            f"{covered} covered of {known} known of {evaluated} evaluated; needed: each at most "
            "the next"
        )
    if known == 0:
        return Judgement("not enough known yet", None, 0.0, 1.0, 1.0)
    low, high = coverage_band(n, known, alpha)
    p = coverage_p_value(n, known, covered, alpha)
    verdict: Verdict = "kept" if p >= WATCH else "watch" if p >= BROKEN else "broken"
    if coverage_p_value(n, known, 0, alpha) >= BROKEN:
        verdict = "not enough known yet"
    return Judgement(verdict, covered / known, low, high, p)


def sentence(judgement: Judgement, evaluated: int, known: int, alpha: float) -> str:
    """Return the verdict as a person reads it.

    >>> one = judge(n=100, evaluated=500, known=400, covered=362, alpha=0.1)
    >>> sentence(one, 500, 400, 0.1)
    'kept: 90.5 % of 400 known nodes; 82.8 % to 95.8 % is usual for a promise of 90 %'
    """
    if judgement.verdict == "not enough known yet":
        return f"not enough known yet ({known} of {evaluated})"
    return (
        f"{judgement.verdict}: {100 * (judgement.coverage or 0):.1f} % of {known} known nodes; "
        f"{100 * judgement.low:.1f} % to {100 * judgement.high:.1f} % is usual for a promise of "
        f"{100 * (1 - alpha):g} %"
    )
