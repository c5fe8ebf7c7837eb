"""Coverage rows derived again: what each audit counted, from the classes that were known then.

Every row of an `audited` entry is compared, also one that a later audit has replaced: somebody read
it. Derived are the counts, the version and the alpha; band, p-values and verdict follow from counts
by laws that are simulated, with settings of that day, and keep the words that they were read with:
they are compared with their seal alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.store.audit_chain.keyless import FIELD as KEYLESS
from ringfence.connector.store.tallies import COUNTS
from ringfence.jobs.auditing.sample_coverage import QUARTER, QUARTER_NS
from ringfence.jobs.integrity.derivation.counted import NOTHING, Counted, total_of
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.derivation.history import Body, DecidedRun, History

SUBJECT = "coverage rows"
OLDER = "about several runs, of versions that may have counted them otherwise"
FURTHER = "about sets at alphas after the first, which are judged by the newest class alone"
UNGROUPED = "about groups that were read before they were sealed"

Terms = tuple[Any, ...]


class CoverageRows:
    """Derives the rows of one audit after the other."""

    def __init__(self, history: History, counted: Counted) -> None:
        self.history, self.counted = history, counted
        self._of_terms: dict[Terms, list[DecidedRun]] = {}
        self._sums: dict[Terms, NDArray[np.int64]] = {}

    def add_run(self, run: DecidedRun) -> None:
        """Take a run in that was decided."""
        self._of_terms.setdefault(_terms(run.facts), []).append(run)

    def derive(self, body: Body, findings: Findings) -> None:
        """Compare the rows of an `audited` entry."""
        self._sums.clear()
        current = KEYLESS in body
        for row in body["coverage"]:
            run = self.history.runs.get(row["seq"])
            if run is None:
                findings.compare(SUBJECT, f"{_name(row)}: that run was not decided yet")
            elif reason := self._not_derivable(row, current):
                findings.leave(SUBJECT, reason)
            else:
                findings.compare(SUBJECT, *self._problems(row, run))

    def _not_derivable(self, row: Body, current: bool) -> str:
        if row["slice"] != "run" and not current:
            return OLDER
        if not row.get("first_alpha", True):
            return FURTHER
        counted = self.counted
        if row["slice"] == "group" and counted.runs_with_groups - counted.grouped:
            return UNGROUPED
        return ""

    def _problems(self, row: Body, run: DecidedRun) -> Iterator[str]:
        if row["model"] != run.version:
            yield f"{_name(row)}: model is {row['model']}, but {run.version} decided that run"
        if not row.get("own_promise", False) and row["alpha"] != run.alphas[0]:
            yield f"{_name(row)}: alpha is {row['alpha']:g}, but the run has {run.alphas[0]:g}"
        expected = self._expected(row, run)
        wrong = [
            f"{name} is {row[name]}, expected {count}"
            for name, count in zip(COUNTS, expected, strict=True)
            if row[name] != count
        ]
        if wrong:
            yield f"{_name(row)}: {', '.join(wrong)}, by the predictions and the classes known then"

    def _expected(self, row: Body, run: DecidedRun) -> Sequence[int]:
        counted, slice_, name = self.counted, row["slice"], row["name"]
        if slice_ == "run":
            return counted.by_run[run.seq]
        if slice_ in ("total", "window"):
            return self._expected_of_span(row, run)
        runs = self._runs_of_terms(run)
        if slice_ == "class":
            return total_of(counted.by_class.get((other.seq, name)) for other in runs)
        if slice_ == "group":
            return total_of(counted.by_group.get((other.seq, name)) for other in runs)
        return self._expected_of_sample(runs, name)

    def _expected_of_sample(self, runs: Sequence[DecidedRun], name: str) -> Sequence[int]:
        sampled = [run for run in runs if run.seq in self.counted.sampled]
        if not sampled:
            return NOTHING
        times = [run.facts["decided_ns"] for run in sampled]
        first = bisect_right(times, times[-1] - QUARTER_NS) if name == QUARTER else 0
        return total_of(self.counted.sampled[run.seq] for run in sampled[first:])

    def _expected_of_span(self, row: Body, last: DecidedRun) -> Sequence[int]:
        """Counts of the runs up to one, of a window back to as many nodes as the row has.

        How many runs a window has is a setting of its day.
        """
        sums, end = self._running_sums(last), len(self._runs_of_terms(last))
        first = 0
        if row["slice"] == "window":
            before = sums[end, 0] - row["evaluated"]
            first = max(0, int(np.searchsorted(sums[: end + 1, 0], before, side="right")) - 1)
        counts: list[int] = (sums[end] - sums[first]).tolist()
        return counts

    def _running_sums(self, last: DecidedRun) -> NDArray[np.int64]:
        """Counts of the first 0, 1, 2, … runs that are counted together [runs + 1, counts]."""
        terms = _terms(last.facts)
        if terms not in self._sums:
            counts = [self.counted.by_run[run.seq] for run in self._of_terms[terms]]
            self._sums[terms] = np.cumsum([NOTHING, *counts], axis=0)
        return self._sums[terms]

    def _runs_of_terms(self, last: DecidedRun) -> Sequence[DecidedRun]:
        """The runs up to one that are counted with it, oldest first."""
        runs = self._of_terms[_terms(last.facts)]
        return runs[: bisect_right(runs, last.seq, key=lambda run: run.seq)]


def _terms(facts: Mapping[str, Any]) -> Terms:
    """What `Tally.terms` says of the sets at a run's first alpha."""
    weighted = facts["effective_calibration"] != facts["n_calibration"]
    names = ("model", "rule", "score", "alpha", "options")
    return (*(facts[name] for name in names), not weighted)


def _name(row: Body) -> str:
    named = f" {row['name']!r}" if row["name"] else ""
    return f"coverage of run {row['seq']}, {row['slice']}{named}"
