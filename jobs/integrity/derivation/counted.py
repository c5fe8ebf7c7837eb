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

Sets = tuple[int, int]
"""The sets of a run at one of its alphas: the run's number, and the alpha's, from 0 on."""

NOTHING = (0,) * len(COUNTS)


class Counted:
    """Counts by run, by run and class, by run and group, and of the sampled nodes by run."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.by_run: dict[Sets, Counts] = {}
        self.by_class: dict[tuple[Sets, str], Counts] = defaultdict(_none)
        self.by_group: dict[tuple[Sets, str], Counts] = defaultdict(_none)
        self.sampled: dict[Sets, Counts] = defaultdict(_none)
        self.grouped: set[int] = set()
        self._groups_of: dict[int, list[str]] = defaultdict(list)
        self._classes_of: dict[int, int] = {}
        self._sets_of: dict[int, list[Sets]] = {}
        reader = history.reader
        for key, name in rows.grouped_nodes(reader.connection, reader.project):
            if (node := history.place.get(key)) is not None:
                self._groups_of[node].append(name)
        self._runs_with_groups = {history.run_of[node] for node in self._groups_of}

    def waits_for_groups(self) -> bool:
        """Whether groups of some run so far were never sealed, or only later."""
        return bool((self._runs_with_groups & self._sets_of.keys()) - self.grouped)

    def add_run(self, run: DecidedRun) -> None:
        """Count the nodes of a run that was decided, at all of its alphas that are derived."""
        self._classes_of[run.seq] = len(self.history.classes(run.version))
        places = range(len(run.alphas))
        self._sets_of[run.seq] = [
            (run.seq, place) for place in places if self.history.has_sets(run.seq, place)
        ]
        for sets in self._sets_of[run.seq]:
            total = self.by_run[sets] = _none()
            for node in self.history.nodes_of(run.seq):
                counts = self._counts(sets, node, None)
                _add(total, counts)
                if self.history.sampled[node]:
                    _add(self.sampled[sets], counts)

    def add_groups(self, seq: int) -> None:
        """Count the groups of a run's nodes, which were read by now."""
        if seq in self.grouped:
            return
        self.grouped.add(seq)
        for sets in self._sets_of.get(seq, ()):
            for node in self.history.nodes_of(seq):
                for name in self._groups_of.get(node, ()):
                    counts = self._counts(sets, node, self.history.known[node])
                    _add(self.by_group[sets, name], counts)

    def update(self, changes: Iterable[Change]) -> None:
        """Take in classes that became known or changed."""
        for change in changes:
            for sets in self._sets_of.get(self.history.run_of[change.node], ()):
                self._update(sets, change)

    def _update(self, sets: Sets, change: Change) -> None:
        node, before, after = change
        was, now = self._counts(sets, node, before), self._counts(sets, node, after)
        difference = [new - old for new, old in zip(now, was, strict=True)]
        _add(self.by_run[sets], difference)
        if self.history.sampled[node]:
            _add(self.sampled[sets], difference)
        if before is not None:
            _add(self.by_class[sets, before.label], [-old for old in was])
        _add(self.by_class[sets, after.label], now)
        if sets[0] in self.grouped:
            for name in self._groups_of.get(node, ()):
                _add(self.by_group[sets, name], difference)

    def _counts(self, sets: Sets, node: int, known: Known | None) -> Sequence[int]:
        """What one node adds, in the order of `COUNTS`."""
        size = self.history.size_at(node, sets[1])
        single, noticed = size == 1, known is not None
        hit = known is not None and self.history.held_at(node, sets[1], known)
        naive = known is not None and known.covered_naive
        unseen = known is not None and known.unseen
        full = size == self._classes_of[sets[0]]
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
