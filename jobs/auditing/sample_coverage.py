"""Coverage rows of the audit sample: the nodes that runs drew by a keyed hash, kept apart.

After each run that drew nodes there are two rows: one over all runs with the same terms, one over
those of the last 90 days. Missing classes are counted both ways (`guarantee.sample_verdict`). The
first row is judged as a total is: only the anytime bound can call it broken. The second is
judged by one look and *watched* at most, for its runs change with every look.

The law is the beta-binomial one with the fewest calibration nodes of the runs: exact for one run
with frozen calibration, as wide as it can be for several runs, about right where the level adapts.
Where classes have alphas of their own the largest of them counts.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import CoverageRow
from ringfence.connector.store.tallies import COUNTS, SUMS, Tally, Terms
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.auditing.summary import is_unweighted, summarise
from ringfence.models.guarantee.anytime import ANYTIME_DELTA, bound_over_runs, over_runs
from ringfence.models.guarantee.sample_verdict import describe_sample, judge_sample
from ringfence.models.guarantee.stratified import JudgedNodes
from ringfence.models.guarantee.verdict import AnytimeBound
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.registry import promise_named

QUARTER_DAYS = 90
QUARTER_NS = QUARTER_DAYS * 86_400 * NANOSECONDS
ALL_RUNS, QUARTER = "", f"last {QUARTER_DAYS} days"
"""Names of the two rows of a run."""


def sample_rows(sampled: Sequence[Tally], decided_ns: Mapping[int, int]) -> list[CoverageRow]:
    """Return the rows of the sample; `sampled` are tallies of sampled nodes, oldest run first.

    `decided_ns` has the time of every run.
    """
    by_terms: dict[Terms, list[Tally]] = {}
    for tally in sampled:
        by_terms.setdefault(tally.terms, []).append(tally)
    return [row for runs in by_terms.values() for row in _rows_of_terms(runs, decided_ns)]


def _rows_of_terms(runs: Sequence[Tally], decided_ns: Mapping[int, int]) -> Iterator[CoverageRow]:
    sums = _RunningSums(runs)
    times = [decided_ns[tally.seq] for tally in runs]
    for end, time_ns in enumerate(times, start=1):
        yield _row(sums, 0, end, ALL_RUNS)
        yield _row(sums, bisect_right(times, time_ns - QUARTER_NS, hi=end), end, QUARTER)


class _RunningSums:
    """Counts and sums over runs from..to in constant time, and what their law needs."""

    def __init__(self, runs: Sequence[Tally]) -> None:
        self.runs = runs
        counts = [[tally.counts[name] for name in COUNTS] for tally in runs]
        self._counts = np.cumsum([[0] * len(COUNTS), *counts], axis=0)
        sums = [[tally.sums[name] for name in SUMS] for tally in runs]
        self._sums = np.cumsum([[0.0] * len(SUMS), *sums], axis=0)
        self._worth = np.array([_worth(tally) for tally in runs])
        evaluated = np.array([tally.counts["evaluated"] for tally in runs], np.int64)
        known = np.array([tally.counts["known"] for tally in runs], np.int64)
        covered = np.array([tally.counts["covered"] for tally in runs], np.int64)
        self.nodes: NDArray[np.int64] = evaluated
        self.at_best: NDArray[np.int64] = covered + evaluated - known
        self.alpha = _largest_alpha(runs[-1])

    def counts(self, first: int, end: int) -> dict[str, int]:
        values = self._counts[end] - self._counts[first]
        return dict(zip(COUNTS, values.tolist(), strict=True))

    def sums(self, first: int, end: int) -> dict[str, float]:
        values = self._sums[end] - self._sums[first]
        return dict(zip(SUMS, values.tolist(), strict=True))

    def size(self, first: int, end: int) -> float:
        """The n of the law: the fewest calibration nodes, or what they are worth."""
        return float(self._worth[first:end].min())


def _row(sums: _RunningSums, first: int, end: int, name: str) -> CoverageRow:
    last = sums.runs[end - 1]
    counts: dict[str, Any] = sums.counts(first, end)
    totals = sums.sums(first, end)
    nodes, known, covered = counts["evaluated"], counts["known"], counts["covered"]
    size, alpha, strata = _law(sums, first, end)
    ever = None  # the runs of a quarter change with every look: one look, and no more
    if name == ALL_RUNS:
        ever = _over_all_looks(size, sums.nodes[:end], sums.at_best[:end], alpha)
    judgement = judge_sample(size, nodes, known, covered, alpha, over_all_looks=ever, strata=strata)
    words = describe_sample(judgement, nodes, known, covered, alpha)
    return CoverageRow(
        seq=last.seq,
        slice="sample",
        name=name,
        model=last.model,
        alpha=last.alpha,
        **counts,
        coverage=judgement.coverage,
        low=judgement.low,
        high=judgement.high,
        p_value=judgement.p_value,
        anytime_low=judgement.anytime_low,
        anytime_p=judgement.anytime_p,
        mean_size=totals["size_all"] / nodes,
        mean_degree=totals["degree_all"] / nodes,
        bias=None,
        bias_words="",
        exact=end - first == 1 and nodes == known and is_unweighted(last),
        raised_by=judgement.raised_by,
        verdict=judgement.verdict,
        words=f"{words} ({name})" if name else words,
        first_alpha=last.first,
    )


def _over_all_looks(
    size: float, nodes: NDArray[np.int64], covered: NDArray[np.int64], alpha: float
) -> AnytimeBound:
    """The p-value over all runs and all looks, and the coverage below which it is under 1 %."""
    ever = over_runs(size, nodes, covered, alpha)
    since = ever.since if ever.p_value < ANYTIME_DELTA else 0
    return AnytimeBound(ever.p_value, bound_over_runs(size, nodes, covered, alpha, since))


def _law(sums: _RunningSums, first: int, end: int) -> tuple[float, float, tuple[JudgedNodes, ...]]:
    """Size, alpha and strata of the law; a single run of known nodes has that of its thresholds."""
    last = sums.runs[end - 1]
    if end - first == 1 and last.counts["known"] == last.counts["evaluated"]:
        run = summarise([last])
        return run.size, run.alpha, run.judged
    return sums.size(first, end), sums.alpha, ()


def _worth(tally: Tally) -> float:
    return float(tally.n_calibration) if is_unweighted(tally) else tally.effective_calibration


def _largest_alpha(tally: Tally) -> float:
    """The share of the nodes that may be missed at most, whichever classes they have."""
    if not promise_named(tally.promise).per_class:
        return tally.alpha
    classes = PromiseOptions.recorded(json.loads(tally.options)).classes
    return max([tally.alpha, *classes.values()])
