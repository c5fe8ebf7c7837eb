"""Coverage rows derived again: what each audit counted, from the classes that were known then.

Every row of an `audited` entry is compared, also one that a later audit has replaced: somebody read
it. Derived are the counts, the version and the alpha; band, p-values and verdict follow from counts
by laws that are simulated, with settings of that day, and keep the words that they were read with:
they are compared with their seal alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.store.audit_chain.keyless import FIELD as KEYLESS
from ringfence.connector.store.tallies import COUNTS
from ringfence.jobs.auditing.sample_coverage import QUARTER, QUARTER_NS
from ringfence.jobs.integrity.derivation.counted import NOTHING, Counted, Sets, total_of
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.derivation.history import Body, DecidedRun, History

SUBJECT = "coverage rows"
OLDER = "about several runs, of versions that may have counted them otherwise"
FURTHER = "about sets at alphas after the first, of runs whose sets can't be derived"
UNGROUPED = "about groups that were read before they were sealed"

Terms = tuple[Any, ...]


class CoverageRows:
    """Derives the rows of one audit after the other."""

    def __init__(self, history: History, counted: Counted) -> None:
        self.history, self.counted = history, counted
        self._of_terms: dict[Terms, list[Sets]] = {}
        self._sums: dict[Terms, NDArray[np.int64]] = {}

    def add_run(self, run: DecidedRun) -> None:
        """Take a run in that was decided."""
        for place in range(len(run.alphas)):
            self._of_terms.setdefault(_terms(run, place), []).append((run.seq, place))

    def derive(self, body: Body, findings: Findings) -> None:
        """Compare the rows of an `audited` entry."""
        self._sums.clear()
        current = KEYLESS in body
        for row in body["coverage"]:
            run = self.history.runs.get(row["seq"])
            if run is None:
                findings.compare(SUBJECT, f"{_name(row)}: that run was not decided yet")
            elif (place := _place(row, run)) is None:
                findings.compare(SUBJECT, f"{_name(row)}: the run has no alpha {row['alpha']:g}")
            elif reason := self._not_derivable(row, run, place, current):
                findings.leave(SUBJECT, reason)
            else:
                findings.compare(SUBJECT, *self._problems(row, run, place))

    def _not_derivable(self, row: Body, run: DecidedRun, place: int, current: bool) -> str:
        if row["slice"] != "run" and not current:
            return OLDER
        several = [] if row["slice"] == "run" else self._sets_so_far(run, place)
        if any(sets not in self.counted.by_run for sets in ((run.seq, place), *several)):
            return FURTHER
        if row["slice"] == "group" and self.counted.waits_for_groups():
            return UNGROUPED
        return ""

    def _problems(self, row: Body, run: DecidedRun, place: int) -> Iterator[str]:
        if row["model"] != run.version:
            yield f"{_name(row)}: model is {row['model']}, but {run.version} decided that run"
        if not row.get("own_promise", False) and row["alpha"] != run.alphas[place]:
            yield f"{_name(row)}: alpha is {row['alpha']:g}, but the run has {run.alphas[place]:g}"
        expected = self._expected(row, run, place)
        wrong = [
            f"{name} is {row[name]}, expected {count}"
            for name, count in zip(COUNTS, expected, strict=True)
            if row[name] != count
        ]
        if wrong:
            yield f"{_name(row)}: {', '.join(wrong)}, by the predictions and the classes known then"

    def _expected(self, row: Body, run: DecidedRun, place: int) -> Sequence[int]:
        counted, slice_, name = self.counted, row["slice"], row["name"]
        if slice_ == "run":
            return counted.by_run[run.seq, place]
        if slice_ in ("total", "window"):
            return self._expected_of_span(row, run, place)
        so_far = self._sets_so_far(run, place)
        if slice_ == "class":
            return total_of(counted.by_class.get((sets, name)) for sets in so_far)
        if slice_ == "group":
            return total_of(counted.by_group.get((sets, name)) for sets in so_far)
        return self._expected_of_sample(so_far, name)

    def _expected_of_sample(self, so_far: Sequence[Sets], name: str) -> Sequence[int]:
        sampled = [sets for sets in so_far if sets in self.counted.sampled]
        if not sampled:
            return NOTHING
        times = [self.history.runs[seq].facts["decided_ns"] for seq, _ in sampled]
        first = bisect_right(times, times[-1] - QUARTER_NS) if name == QUARTER else 0
        return total_of(self.counted.sampled[sets] for sets in sampled[first:])

    def _expected_of_span(self, row: Body, last: DecidedRun, place: int) -> Sequence[int]:
        """Counts of the runs up to one, of a window back to as many nodes as the row has.

        How many runs a window has is a setting of its day.
        """
        sums, end = self._running_sums(last, place), len(self._sets_so_far(last, place))
        first = 0
        if row["slice"] == "window":
            before = sums[end, 0] - row["evaluated"]
            first = max(0, int(np.searchsorted(sums[: end + 1, 0], before, side="right")) - 1)
        counts: list[int] = (sums[end] - sums[first]).tolist()
        return counts

    def _running_sums(self, last: DecidedRun, place: int) -> NDArray[np.int64]:
        """Counts of the first 0, 1, 2, … runs that are counted together [runs + 1, counts]."""
        terms = _terms(last, place)
        if terms not in self._sums:
            by_run = self.counted.by_run
            counts = [by_run.get(sets, NOTHING) for sets in self._of_terms[terms]]
            self._sums[terms] = np.cumsum([NOTHING, *counts], axis=0)
        return self._sums[terms]

    def _sets_so_far(self, last: DecidedRun, place: int) -> Sequence[Sets]:
        """The runs up to one that are counted with it, oldest first, each with its alpha."""
        of_terms = self._of_terms[_terms(last, place)]
        return of_terms[: bisect_right(of_terms, last.seq, key=lambda sets: sets[0])]


def _place(row: Body, run: DecidedRun) -> int | None:
    """Which alpha of its run a row is about; None where the run has no such alpha."""
    if row.get("first_alpha", True):
        return 0
    return run.alphas.index(row["alpha"]) if row["alpha"] in run.alphas else None


def _terms(run: DecidedRun, place: int) -> Terms:
    """What `Tally.terms` says of the sets at one of a run's alphas."""
    facts = run.facts
    weighted = facts["effective_calibration"] != facts["n_calibration"]
    names = ("model", "rule", "score", "options")
    return (*(facts[name] for name in names), run.alphas[place], not weighted)


def _name(row: Body) -> str:
    named = f" {row['name']!r}" if row["name"] else ""
    further = "" if row.get("first_alpha", True) else f" at alpha {row['alpha']:g}"
    return f"coverage of run {row['seq']}, {row['slice']}{named}{further}"
