"""Whether a list kept its promise, from the listed nodes whose class became known.

What is promised decides the law. `per = "run"` promises the mean of the false shares of runs: by
Hoeffding's inequality n independent runs of mean m > share are at most exp(-n KL(m, share)) likely.
`per = "stream"` promises the share of all listed nodes: by the binomial law. Runs share calibration
nodes, so the first law is an approximation for frozen calibration; docs/mathematics.md says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ringfence.models.guarantee.verdict import BROKEN_P, WATCH_P, Verdict

MIN_KNOWN = 10
"""Listed nodes of known class without which no verdict is given."""


@dataclass(frozen=True, slots=True)
class ListJudgement:
    """The realised false share beside the promised one; p is that of so much when all is well."""

    verdict: Verdict
    mean_of_runs: float | None
    pooled: float | None
    p_value: float


def judge_list(
    false: Sequence[int], known: Sequence[int], empty: int, may_be_wrong: float, *, pooled: bool
) -> ListJudgement:
    """Judge a list by its runs.

    Args:
        false: listed nodes of known class that are wrong, per run with such nodes [n].
        known: listed nodes of known class, per run [n].
        empty: runs with an empty list: their false share is 0.
        may_be_wrong: the promised share.
        pooled: whether the promise is about all listed nodes together.

    >>> judge_list([6], [20], 0, 0.2, pooled=True).verdict
    'kept'
    >>> judge_list([16], [20], 0, 0.2, pooled=True).verdict
    'broken'
    >>> judge_list([1], [2], 0, 0.2, pooled=True).verdict
    'not enough known yet'
    """
    nodes, wrong, runs = sum(known), sum(false), len(known) + empty
    if not nodes:
        return ListJudgement("not enough known yet", 0.0 if runs else None, None, 1.0)
    mean = sum(f / k for f, k in zip(false, known, strict=True)) / runs
    if pooled:
        p = _binomial_tail(wrong, nodes, may_be_wrong)
    else:
        p = math.exp(-runs * _divergence(mean, may_be_wrong)) if mean > may_be_wrong else 1.0
    verdict: Verdict = "kept"
    if nodes < MIN_KNOWN:
        verdict = "not enough known yet"
    elif p < BROKEN_P:
        verdict = "broken"
    elif p < WATCH_P:
        verdict = "watch"
    return ListJudgement(verdict, mean, wrong / nodes, p)


def _binomial_tail(at_least: int, trials: int, share: float) -> float:
    """P(Binomial(trials, share) >= at_least)."""
    from scipy.special import betainc

    return 1.0 if at_least == 0 else float(betainc(at_least, trials - at_least + 1, share))


def _divergence(mean: float, share: float) -> float:
    """Kullback-Leibler divergence of two coins."""
    parts = ((mean, share), (1 - mean, 1 - share))
    return sum(m * math.log(m / s) for m, s in parts if m > 0)
