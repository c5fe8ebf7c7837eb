"""Whether a list kept its promise, from the listed nodes whose class became known.

What is promised decides the law. `per = "run"` promises the mean of the false shares of runs: by
Hoeffding's inequality n independent runs of mean m > share are at most exp(-n KL(m, share)) likely.
`per = "stream"` promises the share of all listed nodes: by the binomial law. Runs share calibration
nodes, so the first law is an approximation for frozen calibration; docs/mathematics.md says so.

A run counts in the mean once a listed node of it is known. Short lists are seldom among these, and
empty ones need no class at all; so runs stand for those that are not known. How many lists are
empty is read from their lengths, up to the newest run that counts; and each counted run weighs by
one over the chance that of a list of its length any node is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.models.guarantee.verdict import BROKEN_P, WATCH_P, Verdict

MIN_KNOWN = 10
"""Listed nodes of known class without which no verdict is given."""


@dataclass(frozen=True, slots=True)
class RunOfList:
    """A list of a run: its length, how many nodes of it are known, how many of these are wrong.

    `listed` is how many nodes the run listed, whichever of them are counted here. A run that
    `waits` is counted in nothing but how often lists are empty.
    """

    listed: int
    known: int
    wrong: int
    waits: bool = False


@dataclass(frozen=True, slots=True)
class ListJudgement:
    """The realised false share beside the promised one; p is that of so much when all is well.

    `mean_of_runs` is None while no list is known that holds nodes, 0 where all are empty.
    """

    verdict: Verdict
    mean_of_runs: float | None
    pooled: float | None
    p_value: float


def judge_list(runs: Sequence[RunOfList], may_be_wrong: float, *, pooled: bool) -> ListJudgement:
    """Judge a list by its runs, oldest first; `pooled`: the promise is about all nodes together.

    >>> judge_list([RunOfList(20, 20, 6)], 0.2, pooled=True).verdict
    'kept'
    >>> judge_list([RunOfList(30, 20, 16)], 0.2, pooled=True).verdict
    'broken'
    >>> judge_list([RunOfList(2, 2, 1)], 0.2, pooled=True).verdict
    'not enough known yet'
    >>> runs = [RunOfList(10, 10, 6), RunOfList(0, 0, 0), RunOfList(10, 10, 6), RunOfList(0, 0, 0)]
    >>> round(judge_list(runs, 0.2, pooled=False).mean_of_runs, 3)  # the last is not waited for
    0.4
    """
    counted = [run for run in runs if run.known and not run.waits]
    nodes, wrong = sum(run.known for run in counted), sum(run.wrong for run in counted)
    if not counted:
        some = any(run.listed for run in runs)
        return ListJudgement("not enough known yet", None if some else 0.0, None, 1.0)
    mean, worth = _mean_of_runs(runs, counted)
    if pooled:
        p = _binomial_tail(wrong, nodes, may_be_wrong)
    else:
        p = math.exp(-worth * _divergence(mean, may_be_wrong)) if mean > may_be_wrong else 1.0
    verdict: Verdict = "kept"
    if nodes < MIN_KNOWN:
        verdict = "not enough known yet"
    elif p < BROKEN_P:
        verdict = "broken"
    elif p < WATCH_P:
        verdict = "watch"
    return ListJudgement(verdict, mean, wrong / nodes, p)


def _mean_of_runs(runs: Sequence[RunOfList], counted: Sequence[RunOfList]) -> tuple[float, float]:
    """The mean of the runs' false shares, empty lists as 0, and how many runs that is worth."""
    newest = max(place for place, run in enumerate(runs) if run.known and not run.waits)
    until_newest = runs[: newest + 1]
    filled = float(np.mean([run.listed > 0 for run in until_newest]))
    open_to_count = [run for run in until_newest if not run.waits]
    share_known = sum(run.known for run in counted) / sum(run.listed for run in open_to_count)
    shares = np.array([run.wrong / run.known for run in counted])
    length = np.array([run.listed for run in counted])
    weight = 1.0 / (1.0 - (1.0 - share_known) ** length)
    mean = filled * float(weight @ shares / weight.sum())
    return mean, float(weight.sum() ** 2 / (weight @ weight)) / filled


def _binomial_tail(at_least: int, trials: int, share: float) -> float:
    """P(Binomial(trials, share) >= at_least)."""
    from scipy.special import betainc

    return 1.0 if at_least == 0 else float(betainc(at_least, trials - at_least + 1, share))


def _divergence(mean: float, share: float) -> float:
    """Kullback-Leibler divergence of two coins."""
    parts = ((mean, share), (1 - mean, 1 - share))
    return sum(m * math.log(m / s) for m, s in parts if m > 0)
