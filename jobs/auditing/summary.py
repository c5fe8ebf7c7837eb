"""Totals over runs with the same terms, after each of them.

A total is counted after every run, so that each page can say what was known then. Adding one run to
the total costs the same however many there were: an audit of 10,000 runs adds 10,000 times, and
each result is to the bit what counting all runs anew gives.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.store.tallies import COUNTS, QUANTITIES, SUMS, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.models.guarantee.selection import MeanDifference, Moments, WithinRuns
from ringfence.models.guarantee.stratified import JudgedNodes
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.registry import promise_named
from ringfence.models.rules.registry import rule_named

NAMES = {"degree": "degree", "size": "set size", "top_p": "p-value of the likeliest class"}


@dataclass(frozen=True, slots=True)
class Summary:
    """Runs counted together.

    tally: counts and sums, at the last run; without strata.
    first_seq, runs: the first run, and how many there are.
    alpha: the share that may be missed, a mean where classes have alphas of their own.
    size: the n of the law.
    judged: the known nodes of a single run by the threshold that judged them.
    comparable: known and unknown nodes of the runs that have both.
    differences: how far these are apart.
    known, covered: of each run.
    """

    tally: Tally
    first_seq: int
    runs: int
    alpha: float
    size: float
    judged: tuple[JudgedNodes, ...]
    comparable: tuple[int, int]
    differences: tuple[MeanDifference, ...]
    known: NDArray[np.int64]
    covered: NDArray[np.int64]


def summarise(parts: Sequence[Tally]) -> Summary:
    """Return the total of some runs."""
    (summary,) = _summaries(parts, from_end=len(parts))
    return summary


def summaries(parts: Sequence[Tally]) -> Iterator[Summary]:
    """Return the total of the runs up to each of them."""
    return _summaries(parts, from_end=1)


def _summaries(parts: Sequence[Tally], from_end: int) -> Iterator[Summary]:
    counts, sums = dict.fromkeys(COUNTS, 0), dict.fromkeys(SUMS, 0.0)
    fewest = parts[0].n_calibration
    least = parts[0].effective_calibration
    naive: float | None = 0.0
    strata, both = _Strata(), [0, 0]
    within = {quantity: WithinRuns(NAMES[quantity]) for quantity in QUANTITIES}
    known = np.array([part.counts["known"] for part in parts], np.int64)
    covered = np.array([part.counts["covered"] for part in parts], np.int64)
    for end, part in enumerate(parts, start=1):
        for name in COUNTS:
            counts[name] += part.counts[name]
        for name in SUMS:
            sums[name] += part.sums[name]
        fewest, least = (
            min(fewest, part.n_calibration),
            min(least, part.effective_calibration),
        )
        if naive is not None:
            naive = None if part.classes_naive is None else naive + part.classes_naive
        strata.add(part)
        if part.counts["known"] and unknown(part):
            both = [both[0] + part.counts["known"], both[1] + unknown(part)]
        for quantity, moments in within.items():
            moments.add(*_sides(part, quantity))
        if end < from_end:
            continue
        tally = replace(
            part, n_calibration=fewest, effective_calibration=least, counts=dict(counts),
            sums=dict(sums), strata=(), classes_naive=naive,
        )  # fmt: skip
        judged = strata.known if strata.known == counts["known"] else 0
        differences = (stratum.difference for stratum in within.values())
        yield Summary(
            tally,
            parts[0].seq,
            end,
            strata.mean_alpha(part) if judged else part.alpha,
            strata.size() if judged else _size(tally),
            strata.of_last if judged and end == 1 else (),
            (both[0], both[1]),
            tuple(difference for difference in differences if difference is not None),
            known[:end],
            covered[:end],
        )


class _Strata:
    """The known nodes so far, by the threshold that judged them."""

    def __init__(self) -> None:
        self.known = 0
        self.of_last: tuple[JudgedNodes, ...] = ()
        self._missed = 0.0
        self._sizes: set[float] = set()
        self._one_each = True
        self._nodes, self._spreads = array("d"), array("d")

    def add(self, tally: Tally) -> None:
        class_alphas = _own_alphas(tally)
        for run in tally.strata:
            self.of_last = tuple(
                # what adapts is promised at alpha: the level in force is how that is reached
                JudgedNodes(
                    _worth(stratum), stratum.known,
                    class_alphas.get(stratum.class_, tally.alpha) if tally.adapt else stratum.level,
                )
                for stratum in run
            )  # fmt: skip
            nodes = sum(stratum.known for stratum in run)
            self.known += nodes
            for stratum in run:
                self._missed += stratum.known * class_alphas.get(stratum.class_, tally.alpha)
            judged = [stratum for stratum in self.of_last if stratum.m]
            self._sizes.update(stratum.n for stratum in judged)
            self._one_each &= len(judged) <= 1
            if nodes:
                variance = sum(
                    (stratum.m / nodes) ** 2 / (stratum.n + 2.0) for stratum in self.of_last
                )
                self._nodes.append(nodes)
                self._spreads.append(math.sqrt(variance))

    def mean_alpha(self, last: Tally) -> float:
        """The share of the known nodes that may be missed, where classes have their own alphas."""
        return float(round(self._missed / self.known, 3)) if _own_alphas(last) else last.alpha

    def size(self) -> float:
        """The size of one stratum with the spread that coverage over all runs has at most.

        As `equivalent_size` of all runs: standard deviations are averaged over known nodes.
        """
        if len(self._sizes) == 1 and self._one_each:
            return float(next(iter(self._sizes)))
        weights = np.frombuffer(self._nodes) / self.known
        spread = float(np.cumsum(weights * np.frombuffer(self._spreads))[-1])  # in order of runs
        return max(0.0, 1.0 / spread**2 - 2.0)


def _own_alphas(tally: Tally) -> Mapping[str, float]:
    """Class -> its alpha, where classes have alphas of their own."""
    if not promise_named(tally.promise).per_class:
        return {}
    return PromiseOptions.recorded(json.loads(tally.options)).classes


def _worth(stratum: StratumCounts) -> float:
    n, worth = stratum.n_calibration, stratum.effective_calibration
    return float(n) if worth == n else worth


def _size(tally: Tally) -> float:
    """The n of the law where no strata are on record: calibration nodes, or what they are worth.

    Runs of older versions have no thresholds on record, a class that the model never saw has none
    under a promise per class.
    """
    return float(tally.n_calibration) if is_unweighted(tally) else tally.effective_calibration


def is_unweighted(tally: Tally) -> bool:
    """Whether all calibration nodes of a threshold had equal weight, at a fixed level.

    The law of one run is then exact; over several runs, which share calibration nodes, it errs to
    the side of too wide a band.
    """
    alike = tally.effective_calibration == tally.n_calibration
    return alike and not rule_named(tally.rule).weighs_nodes and not tally.adapt


def unknown(tally: Tally) -> int:
    """How many evaluated nodes have no known class."""
    return tally.counts["evaluated"] - tally.counts["known"]


def _sides(tally: Tally, quantity: str) -> tuple[Moments, Moments]:
    """One quantity of the known and of the unknown nodes of a run."""
    sums = tally.sums
    known = Moments(
        tally.counts["known"], sums[f"{quantity}_known"], sums[f"{quantity}_known_squared"]
    )
    total, squares = sums[f"{quantity}_all"], sums[f"{quantity}_all_squared"]
    return known, Moments(unknown(tally), total - known.total, squares - known.squares)
