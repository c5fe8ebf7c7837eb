"""Evidence that coverage fell below what is promised: the e-process over the settled runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from ringfence.connector.store.alarms import CoverageDecline
from ringfence.connector.store.tallies import Tally
from ringfence.jobs.auditing.coverage_law import LivingCoverage, uses_recent_labels
from ringfence.jobs.auditing.summary import summarise
from ringfence.models.guarantee.decline import decline, predict_frozen, predict_living

MAX_LOG_CAPITAL = 700.0  # exp of more is no float


def find_decline(
    of_terms: Sequence[Tally], law: LivingCoverage | None, unsettled: Collection[int]
) -> list[CoverageDecline]:
    """Return the evidence of runs with the same terms; none where there is no law for them.

    Args:
        of_terms: the runs, oldest first.
        law: their simulated law; None where calibration is frozen, or where too little is on
            record for one: then nothing can be said of a set that lives.
        unsettled: runs of which only early classes are known; they are left out.
    """
    runs = [run for run in of_terms if run.counts["known"] and run.seq not in unsettled]
    if not runs or (law is None and uses_recent_labels(runs[-1])):
        return []
    summary = summarise(runs)
    missed = summary.known - summary.covered
    if law is None:
        predicted = predict_frozen(summary.size, summary.known, missed, summary.alpha)
    else:
        predicted = predict_living(law.among([run.seq for run in runs]).law, missed)
    bet = decline(summary.known, missed, predicted, summary.alpha)
    return [
        CoverageDecline(
            model=runs[-1].model,
            alpha=runs[-1].alpha,
            runs=len(runs),
            capital=math.exp(min(bet.newest, MAX_LOG_CAPITAL)),
            since_seq=runs[bet.since].seq,
            known=int(np.sum(summary.known[bet.since :])),
            covered=int(np.sum(summary.covered[bet.since :])),
        )
    ]


def describe_decline(decline: CoverageDecline, alarm_at: float) -> str:
    """Return the evidence as a person reads it.

    >>> bet = CoverageDecline("m", 0.1, runs=40, capital=0.2, since_seq=1, known=9, covered=8)
    >>> describe_decline(bet, 100.0)
    'no decline of coverage in 40 settled runs: evidence 0.2 (alarm at 100)'
    """
    evidence = f"evidence {decline.capital:.2g} (alarm at {alarm_at:g})"
    if decline.capital < alarm_at:
        return f"no decline of coverage in {decline.runs:,} settled runs: {evidence}"
    coverage = f"{100 * decline.covered / decline.known:.1f} % of {decline.known:,} known nodes"
    return (
        f"coverage fell: since run {decline.since_seq} {coverage} are covered where "
        f"{100 * (1 - decline.alpha):g} % are promised, fewer than earlier runs suggest; "
        f"{evidence}. When all is well this ever happens with probability at most 1 % in the life "
        "of a model version"
    )
