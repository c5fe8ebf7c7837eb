"""Counts of predictions and known classes, kept up to date while the chain is gone through.

The same counts as `connector.store.tallies` takes from SQL, but at every audit of the past, which
would be a scan of all predictions for each of them; a test compares the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ringfence.connector.store.queries import derivation_rows as rows
from ringfence.connector.store.tallies import COUNTS
from ringfence.jobs.integrity.derivation.history import Change, DecidedRun, History, Known

Counts = list[int]
"""One number for each name of `COUNTS`."""

NOTHING = (0,) * len(COUNTS)


class Counted:
    """Counts by run, by run and class, by run and group, and of the sampled nodes by run."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.by_run: dict[int, Counts] = {}
        self.by_class: dict[tuple[int, str], Counts] = defaultdict(_none)
        self.by_group: dict[tuple[int, str], Counts] = defaultdict(_none)
        self.sampled: dict[int, Counts] = defaultdict(_none)
        self.grouped: set[int] = set()
        self._groups_of: dict[int, list[str]] = defaultdict(list)
        self._classes_of: dict[int, int] = {}
        reader = history.reader
        for key, name in rows.grouped_nodes(reader.connection, reader.project):
            if (node := history.place.get(key)) is not None:
                self._groups_of[node].append(name)
        self.runs_with_groups = {history.run_of[node] for node in self._groups_of}

    def add_run(self, run: DecidedRun) -> None:
        """Count the nodes of a run that was decided."""
        self._classes_of[run.seq] = len(self.history.classes(run.version))
        total = self.by_run[run.seq] = _none()
        for node in self.history.nodes_of(run.seq):
            counts = self._counts(node, None)
            _add(total, counts)
            if self.history.sampled[node]:
                _add(self.sampled[run.seq], counts)

    def add_groups(self, seq: int) -> None:
        """Count the groups of a run's nodes, which were read by now."""
        if seq in self.grouped:
            return
        self.grouped.add(seq)
        for node in self.history.nodes_of(seq):
            for name in self._groups_of.get(node, ()):
                _add(self.by_group[seq, name], self._counts(node, self.history.known[node]))

    def update(self, changes: Iterable[Change]) -> None:
        """Take in classes that became known or changed."""
        for node, before, after in changes:
            seq = self.history.run_of[node]
            if seq not in self.by_run:
                continue
            was, now = self._counts(node, before), self._counts(node, after)
            difference = [new - old for new, old in zip(now, was, strict=True)]
            _add(self.by_run[seq], difference)
            if self.history.sampled[node]:
                _add(self.sampled[seq], difference)
            if before is not None:
                _add(self.by_class[seq, before.label], [-old for old in was])
            _add(self.by_class[seq, after.label], now)
            if seq in self.grouped:
                for name in self._groups_of.get(node, ()):
                    _add(self.by_group[seq, name], difference)

    def _counts(self, node: int, known: Known | None) -> Sequence[int]:
        """What one node adds, in the order of `COUNTS`."""
        size = self.history.size[node]
        single, noticed = size == 1, known is not None
        hit = known is not None and known.covered
        naive = known is not None and known.covered_naive
        unseen = known is not None and known.unseen
        full = size == self._classes_of[self.history.run_of[node]]
        return (
            1, noticed, hit, naive, unseen,
            single, single and noticed, single and hit, size == 0, full,
        )  # fmt: skip


def total_of(parts: Iterable[Sequence[int] | None]) -> Counts:
    """Return the sum of some counts; None stands for none."""
    total = _none()
    for part in parts:
        if part is not None:
            _add(total, part)
    return total


def _none() -> Counts:
    return [0] * len(COUNTS)


def _add(total: Counts, counts: Sequence[int]) -> None:
    for place, count in enumerate(counts):
        total[place] += count
