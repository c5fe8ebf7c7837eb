"""The verdict on an audit sample: nodes that a keyed hash drew, whoever gets labelled otherwise.

Once all of its classes are known, the share covered is an unbiased estimate of the coverage of all
nodes that it was drawn from, and the number covered has the law of a run of that size
(`models.guarantee.law`). While classes are missing, nothing says which: a node that nobody could
find out may be just the one that was missed. So the missing ones are counted both ways. Coverage
lies between covered / nodes and (covered + missing) / nodes; the promise is called broken, or to be
watched for too little coverage, only if it is with all of them covered, and kept only if both ends
lie inside the usual band of the whole sample.

    >>> judge_sample(500, nodes=200, known=200, covered=184, alpha=0.1).verdict
    'kept'
    >>> judge_sample(500, nodes=200, known=180, covered=170, alpha=0.1).verdict
    'not enough known yet'
    >>> judge_sample(500, nodes=200, known=180, covered=140, alpha=0.1).verdict
    'watch'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ringfence.models.guarantee.anytime import anytime_low, log_evidence
from ringfence.models.guarantee.law import coverage_band, coverage_p_value
from ringfence.models.guarantee.stratified import (
    JudgedNodes,
    stratified_band,
    stratified_p_value,
)
from ringfence.models.guarantee.verdict import (
    ANYTIME_BOUND,
    BROKEN_P,
    ROUNDING,
    USUAL_BAND,
    AnytimeBound,
    Verdict,
    labels_needed,
)


@dataclass(frozen=True, slots=True)
class SampleJudgement:
    """Coverage of a sample against the law that holds when all is well.

    low and high are the usual band of the whole sample, outside of which it is *watched*: 5 of 100
    looks when all is well. `p_value` and `anytime_p` count missing nodes as covered, so that they
    are valid whatever these are; coverage below `anytime_low` is *broken*. `coverage` is None while
    a class is missing, `needed` the fewest nodes for a verdict; `raised_by` names the bound behind
    *watch* or *broken*.
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


def judge_sample(
    n: float,
    nodes: int,
    known: int,
    covered: int,
    alpha: float,
    *,
    over_all_looks: AnytimeBound | None = None,
    strata: Sequence[JudgedNodes] = (),
) -> SampleJudgement:
    """Return the verdict on a sample of `nodes`, of which `known` are known and `covered` covered.

    Args:
        n: calibration nodes behind the sets, or what they are worth.
        over_all_looks: the bound over all runs and all days (`anytime.over_runs`) with missing
            nodes counted as covered. It alone can say *broken*; without it a sample is *watched* at
            most.
        strata: the sampled nodes of one run by the calibration nodes that judged them, where all
            are known: band and p are then those of the sum of their laws.
    """
    if not 0 <= covered <= known <= nodes:
        raise ValueError(f"{covered} covered of {known} known of {nodes} sampled nodes; needed: "
                         "each at most the next")  # fmt: skip
    best = covered + nodes - known
    low, high = stratified_band(strata) if strata else coverage_band(n, nodes, alpha)
    bound = over_all_looks or _bound_of_one_look(n, nodes, best, alpha)
    needed = labels_needed(n, alpha)
    below, above = best / nodes < low - ROUNDING, covered / nodes > high + ROUNDING
    inside = covered / nodes >= low - ROUNDING and best / nodes <= high + ROUNDING
    verdict: Verdict = "not enough known yet"
    if over_all_looks is not None and bound.p_value < BROKEN_P:
        verdict = "broken"
    elif nodes >= needed and (below or above):
        verdict = "watch"
    elif nodes >= needed and inside:
        verdict = "kept"
    return SampleJudgement(
        verdict,
        covered / nodes if known == nodes else None,
        low,
        high,
        _p_value(n, nodes, best, alpha, strata),
        bound.low,
        bound.p_value,
        needed,
        {"broken": ANYTIME_BOUND, "watch": USUAL_BAND}.get(verdict, ""),
    )


def _bound_of_one_look(n: float, nodes: int, covered: int, alpha: float) -> AnytimeBound:
    evidence = max(0.0, log_evidence(n, nodes, covered, alpha))
    return AnytimeBound(math.exp(-evidence), anytime_low(n, nodes, alpha))


def _p_value(
    n: float, nodes: int, covered: int, alpha: float, strata: Sequence[JudgedNodes]
) -> float:
    if strata:
        return stratified_p_value(strata, covered)
    return coverage_p_value(n, nodes, covered, alpha)


def sample_bounds(nodes: int, known: int, covered: int) -> tuple[float, float]:
    """Return coverage of a sample with the missing nodes counted as missed, and as covered.

    >>> sample_bounds(nodes=200, known=190, covered=180)
    (0.9, 0.95)
    """
    return covered / nodes, (covered + nodes - known) / nodes


def describe_sample(
    judgement: SampleJudgement, nodes: int, known: int, covered: int, alpha: float
) -> str:
    """Return the verdict on a sample as a person reads it.

    >>> whole = judge_sample(500, nodes=200, known=200, covered=184, alpha=0.1)
    >>> describe_sample(whole, 200, 200, 184, 0.1)
    'kept: 92.0 % of 200 sampled nodes, all known; 85.0 % to 94.5 % is usual for a promise of 90 %'
    >>> part = judge_sample(500, nodes=200, known=180, covered=170, alpha=0.1)
    >>> describe_sample(part, 200, 180, 170, 0.1)[:57]
    'not enough known yet: 85.0 to 95.0 % of 200 sampled nodes'
    """
    low, high = sample_bounds(nodes, known, covered)
    missing = nodes - known
    share = f"{100 * low:.1f} % of {nodes:,} sampled nodes, all known"
    if missing:
        share = (
            f"{100 * low:.1f} to {100 * high:.1f} % of {nodes:,} sampled nodes ({missing:,} not "
            "known yet, counted both ways)"
        )
    usual = (
        f"{100 * judgement.low:.1f} % to {100 * judgement.high:.1f} % is usual for a promise of "
        f"{100 * (1 - alpha):g} %"
    )
    needed = "" if nodes >= judgement.needed else f"; a verdict needs {judgement.needed:,} nodes"
    by = f" (raised by the {judgement.raised_by})" if judgement.raised_by else ""
    return f"{judgement.verdict}: {share}; {usual}{needed}{by}"
