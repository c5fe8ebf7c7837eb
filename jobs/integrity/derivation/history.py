"""The record in the order of the chain: what was known when an entry was written.

Rows of SQL have times, but clocks are set back; the chain's numbers are not. A class counts from
the entry that sealed it, a joined node from the run that it joined by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import RunCount
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.audit_chain.run_comparison import RUN_DEFAULTS
from ringfence.connector.store.calibration.run_basis import FIELD as BASIS
from ringfence.connector.store.queries import derivation_rows as rows
from ringfence.connector.store.worklist.marks import KIND as MARKED_NODE
from ringfence.jobs.project.promise import FIRST_TERMS, PromiseTerms

Body = Mapping[str, Any]
NO_CLASSES: tuple[str, ...] = ()


class Known(NamedTuple):
    """What is said of a node's class; `noticed_ns` is when the first one was noticed."""

    label: str
    covered: bool
    covered_naive: bool
    unseen: bool
    noticed_ns: int


class Change(NamedTuple):
    """A class of a node that became known or changed."""

    node: int
    before: Known | None
    after: Known


@dataclass(frozen=True, slots=True)
class DecidedRun:
    """A run as its entry has it; `entry` is the entry's number."""

    entry: int
    body: Body
    facts: Body = field(repr=False)

    @property
    def seq(self) -> int:
        """The run's number."""
        return int(self.facts["seq"])

    @property
    def version(self) -> str:
        """The model version that decided it."""
        return str(self.facts["model"])

    @property
    def basis(self) -> Body | None:
        """What the entry says besides for its derivation; None in older versions."""
        basis: Body | None = self.body.get(BASIS)
        return basis

    @property
    def alphas(self) -> tuple[float, ...]:
        """All alphas, the first one first."""
        text = self.facts["alphas"]
        return tuple(json.loads(text)) if text else (float(self.facts["alpha"]),)

    @property
    def options(self) -> Body:
        """The settings beside rule, score and alpha, where they are not the first defaults."""
        return dict(json.loads(self.facts["options"]))

    @property
    def levels(self) -> Body:
        """The column `levels`; empty where the run says nothing of levels."""
        return dict(json.loads(self.facts["levels"])) if self.facts["levels"] else {}

    @property
    def terms(self) -> PromiseTerms:
        """The promise that the run was decided under."""
        names = ("rule", "score", "promise", "calibration_set", "adapt", "weights")
        values: dict[str, Any] = dict(FIRST_TERMS.as_manifest())
        values |= {name: value for name, value in self.options.items() if name in values}
        return PromiseTerms(**values | {name: self.facts[name] for name in names})


def decided_run(entry: int, body: Body) -> DecidedRun:
    """Return a run as its entry has it; older entries lack columns that were always the same."""
    return DecidedRun(entry, body, {**RUN_DEFAULTS, **body["run"]})


@dataclass(frozen=True, slots=True)
class _FurtherSets:
    """A run's sets at the alphas after the first: rows by node, classes by name."""

    rows: Mapping[int, int]
    places: Mapping[str, int]
    sets: NDArray[np.bool_]
    sizes: NDArray[np.int64]

    def size(self, node: int, place: int) -> int:
        """Return how many classes are in a node's set."""
        return int(self.sizes[place - 1, self.rows[node]])

    def holds(self, node: int, place: int, label: str) -> bool:
        """Whether a class is in a node's set; one that the version does not know is in none."""
        if label not in self.places:
            return False
        return bool(self.sets[place - 1, self.rows[node], self.places[label]])


class Manifests:
    """The manifests of all versions: what sets are derived from beside a run's own rows."""

    def __init__(self, reader: RecordReader, record: AuditRecord) -> None:
        self.reader, self.record = reader, record

    def keep_further(
        self, run: DecidedRun, keys: Sequence[str], sets: NDArray[np.bool_], classes: Sequence[str]
    ) -> None:
        """Take sets at the alphas after the first [alphas - 1, keys, classes]; not needed here."""

    def manifest(self, version: str) -> Body:
        """Return a version's manifest; empty where it can't be read."""
        try:
            return dict(json.loads(self.record.models[version]["manifest"]))
        except (KeyError, ValueError, TypeError):
            return {}

    def classes(self, version: str) -> tuple[str, ...]:
        """Return a version's classes in the order of its outputs; none where they are unknown."""
        return tuple(map(str, self.manifest(version).get("classes", NO_CLASSES)))


class History(Manifests):
    """Evaluated nodes, runs and manifests; the classes so far, as an entry is reached."""

    def __init__(self, reader: RecordReader, record: AuditRecord) -> None:
        super().__init__(reader, record)
        self.runs: dict[int, DecidedRun] = {}
        self._counts: list[RunCount] = []
        self.keys: list[str] = []
        self.run_of: list[int] = []
        self.size: list[int] = []
        self.sampled: list[bool] = []
        self.listed: list[bool] = []
        for row in rows.evaluated_nodes(reader.connection, reader.project):
            self.keys.append(row.node_key)
            self.run_of.append(row.seq)
            self.size.append(row.size)
            self.sampled.append(row.sampled)
            self.listed.append(row.is_listed)
        self.place = {key: node for node, key in enumerate(self.keys)}
        self.known: list[Known | None] = [None] * len(self.keys)
        entry_of = {body["noticed_ns"]: body["n"] for body in record.bodies("classes")}
        self._noticed = sorted(
            ((entry_of.get(row[0], 0), row)
             for row in rows.noticed_labels(reader.connection, reader.project)),
            key=lambda noticed: noticed[0],  # clocks are set back, entries follow each other
        )  # fmt: skip
        self._worked_on = _first_outcomes(record)
        self._next = 0
        self._of_run: dict[int, list[int]] | None = None
        self._further: dict[int, _FurtherSets] = {}

    def decide(self, entry: int, body: Body) -> DecidedRun:
        """Take a run in; older entries lack columns that stand for what was always so."""
        run = decided_run(entry, body)
        self.runs[run.seq] = run
        facts = run.facts
        nodes = self.nodes_of(run.seq)
        sampled = sum(self.sampled[node] for node in nodes)
        apart = sum(self.listed[node] and not self.sampled[node] for node in nodes)
        count = RunCount(
            run.seq, facts["decided_ns"], facts["n_evaluated"], run.version, apart, sampled
        )
        self._counts.append(count)
        return run

    def advance(self, entry: int) -> list[Change]:
        """Take in the classes that were noticed before an entry."""
        changes = []
        while self._next < len(self._noticed):
            by, (noticed_ns, key, label, *said) = self._noticed[self._next]
            if by >= entry:
                break
            self._next += 1
            node = self.place.get(key)
            if node is not None:
                before = self.known[node]
                first_ns = noticed_ns if before is None else before.noticed_ns
                covered, covered_naive, unseen = said
                after = Known(label, covered, covered_naive, unseen, first_ns)
                self.known[node] = after
                changes.append(Change(node, before, after))
        return changes

    def is_selected(self, node: int, known: Known) -> bool:
        """Whether a node was listed, or its outcome was recorded before its class was noticed."""
        said_ns = self._worked_on.get(self.keys[node])
        return self.listed[node] or (said_ns is not None and said_ns < known.noticed_ns)

    def keep_further(
        self, run: DecidedRun, keys: Sequence[str], sets: NDArray[np.bool_], classes: Sequence[str]
    ) -> None:
        """Keep a run's sets at the alphas after the first."""
        rows = {self.place[key]: row for row, key in enumerate(keys)}
        places = {name: place for place, name in enumerate(classes)}
        self._further[run.seq] = _FurtherSets(rows, places, sets, sets.sum(axis=2))

    def has_sets(self, seq: int, place: int) -> bool:
        """Whether the sets of a run at its alpha number `place` are there; 0 is the first."""
        return place == 0 or seq in self._further

    def size_at(self, node: int, place: int) -> int:
        """Return the size of a node's set at its run's alpha number `place`."""
        if place == 0:
            return self.size[node]
        return self._further[self.run_of[node]].size(node, place)

    def held_at(self, node: int, place: int, known: Known) -> bool:
        """Whether a node's set at its run's alpha number `place` holds its class."""
        if place == 0:
            return known.covered
        return self._further[self.run_of[node]].holds(node, place, known.label)

    def earlier(self, run: DecidedRun) -> Iterator[DecidedRun]:
        """Yield the runs before one, the newest first."""
        return (other for other in reversed(self.runs.values()) if other.seq < run.seq)

    def run_counts(self, before: DecidedRun) -> list[RunCount]:
        """Return number, time, size and version of the runs before one, oldest first."""
        return [count for count in self._counts if count.seq < before.seq]

    def nodes_of(self, seq: int) -> Sequence[int]:
        """Return the nodes that a run evaluated."""
        if self._of_run is None:
            self._of_run = {}
            for node, of in enumerate(self.run_of):
                self._of_run.setdefault(of, []).append(node)
        return self._of_run.get(seq, ())


def _first_outcomes(record: AuditRecord) -> dict[str, int]:
    """When people first said what came out, by key of the node."""
    said: dict[str, int] = {}
    for body in record.bodies(MARKED_NODE):
        mark = body["mark"]
        if mark.get("outcome") is not None:
            said.setdefault(mark["node_key"], mark["at_ns"])
    return said
