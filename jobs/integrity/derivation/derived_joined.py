"""Nodes that joined the calibration derived again from the classes that were known by then.

Each of them had the class that it joined with when the run was decided. Which runs were settled,
and so which nodes were to join, is asked of the rule of the version's manifest; it also depends on
`[graph] label_delay_days`, which older entries don't have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.records import JoinedNode
from ringfence.connector.store.queries import derivation_rows as rows
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.derivation.history import Body, Change, DecidedRun, History
from ringfence.jobs.integrity.derivation.known_at_entry import KnownAtEntry
from ringfence.jobs.project.ancestors import LEARNT, ancestors_of
from ringfence.jobs.scoring.calibration.calibration_set import SHARES_KEY
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.jobs.scoring.calibration.joining_nodes import find_joining
from ringfence.jobs.scoring.calibration.settled_runs import usual_labels

SUBJECT = "joined nodes"
NO_BASIS = "whether more nodes were to join: runs of versions that sealed no label_delay_days"


@dataclass(frozen=True, slots=True)
class Came:
    """Which runs a run answers and how many still wait, derived again."""

    answered: tuple[int, ...]
    waiting: int


class JoinedNodes:
    """Derives run after run; holds what each version saw of the known nodes."""

    def __init__(self, history: History) -> None:
        self.history = history
        reader = history.reader
        self._known: dict[str, KnownAtEntry] = {}
        self._learnt: dict[str, frozenset[str]] = {}
        self._joined: dict[tuple[int, str], list[Any]] = defaultdict(list)
        for row in rows.joined_nodes(reader.connection, reader.project):
            self._joined[row.seq, row.version].append(row)
        self._entry_of_use = {
            entry.facts["activation"]["n"]: entry.n
            for entry in history.record.entries
            if "activation" in entry.facts
        }
        self._consulted = rows.consulted_by_activation(reader.connection, reader.project)

    def update(self, changes: Sequence[Change]) -> None:
        """Take in classes that became known or changed."""
        for known in self._known.values():
            known.update(changes)

    def derive(self, run: DecidedRun, findings: Findings) -> Came | None:
        """Compare the nodes that joined by a run; return which runs it answers, if that follows."""
        stored = self._joined.get((run.seq, run.version), [])
        known = self._known_of(run.version)
        findings.compare(SUBJECT, *self._row_problems(run, known, stored), count=len(stored))
        came: Came | None = None
        classes = self.history.classes(run.version)
        if run.basis is None or not classes:
            findings.leave(SUBJECT, NO_BASIS)
        else:
            came, nodes = self._find(run, run.basis, known, classes)
            findings.compare(SUBJECT, *_set_problems(run, stored, nodes), count=0)
        known.join(run.seq, self._places(stored))
        return came

    def _row_problems(
        self, run: DecidedRun, known: KnownAtEntry, stored: Sequence[Any]
    ) -> Iterator[str]:
        """Compare the rows with the nodes' runs and classes as they were known."""
        history = self.history
        for row in stored:
            where = f"joined {row.node_key} (run {run.seq})"
            node = history.place.get(row.node_key)
            if node is None or history.run_of[node] != row.evaluated_seq:
                yield f"{where}: evaluated_seq is {row.evaluated_seq}, which did not evaluate it"
                continue
            now = history.known[node]
            label = None if now is None else now.label
            if row.label != label:
                yield (
                    f"{where}: label is {row.label!r}, but the known class was "
                    f"{'none' if label is None else repr(label)} when the run was decided"
                )
            if known.has_joined(node):
                yield f"{where}: node_key joined by an earlier run already"

    def _find(
        self, run: DecidedRun, basis: Body, known: KnownAtEntry, classes: Sequence[str]
    ) -> tuple[Came, tuple[JoinedNode, ...]]:
        terms = run.terms
        if not terms.uses_recent_labels:
            return Came((), 0), ()
        manifest = self.history.manifest(run.version)
        usual = usual_labels(manifest, terms, basis["label_delay_days"])
        joining = find_joining(
            known,
            self.history.run_counts(run),
            classes,
            terms.calibration_kind,
            self._eligible_at(run, manifest),
            usual,
        )
        return Came(joining.answered, joining.waiting), joining.joined_nodes

    def _eligible_at(self, run: DecidedRun, manifest: Body) -> Eligibility:
        """Who may join the version, by the activations before the run."""
        before = ancestors_of(manifest)
        consulted = frozenset(
            row.seq
            for row in self._consulted
            if row.version in (run.version, *before)
            and self._entry_of_use.get(row.n, 0) < run.entry
        )
        learnt = frozenset[str]().union(*map(self._learnt_by, before))
        shares = manifest.get(SHARES_KEY, {})
        return Eligibility(run.version, manifest.get("seed", 0), shares, consulted, learnt)

    def _learnt_by(self, version: str) -> frozenset[str]:
        if version not in self._learnt:
            reader = self.history.reader
            keys = rows.members_of_role(reader.connection, reader.project, version, LEARNT)
            self._learnt[version] = frozenset(keys)
        return self._learnt[version]

    def _known_of(self, version: str) -> KnownAtEntry:
        if version not in self._known:
            reader = self.history.reader
            members = rows.evaluated_members(reader.connection, reader.project, version)
            self._known[version] = KnownAtEntry(self.history, {r.node_key: r.role for r in members})
        return self._known[version]

    def _places(self, stored: Iterable[Any]) -> list[int]:
        place = self.history.place
        return [place[row.node_key] for row in stored if row.node_key in place]


def _set_problems(
    run: DecidedRun, stored: Sequence[Any], expected: Sequence[JoinedNode]
) -> Iterator[str]:
    joined = {row.node_key for row in stored}
    wanted = {node.node_key for node in expected}
    for key in sorted(joined - wanted):
        yield f"joined {key} (run {run.seq}): node_key was not to join by the known classes"
    for key in sorted(wanted - joined):
        yield f"joined {key} (run {run.seq}): no row, but by the known classes it was to join"
