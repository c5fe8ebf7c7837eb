"""What the entries after a checkpoint are about: runs, classes, groups, nodes, versions, times.

An entry says what it seals. Runs that were decided, applied or had details removed since are
compared whole, in SQL and in the graph; of older runs the nodes whose class became known, or that
left the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ringfence.connector.records import ChainEntry
from ringfence.connector.store.audit_chain.integrity import AuditRecord
from ringfence.connector.store.first_seen import KIND as SEEN
from ringfence.connector.store.retention.removals import KIND as REMOVED
from ringfence.connector.store.shadow.sets import KIND as SHADOWED

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """What is compared whole: what entries after `since` are about.

    last: the highest number of a run, whenever it was decided. gone: nodes that left the graph.
    noticed: times of label rows. grouped: runs whose groups were read. seen: times of first
    sightings. shadows: version and run of shadow sets. trained: versions.
    """

    since: int
    last: int
    runs: frozenset[int]
    grouped: frozenset[int]
    gone: frozenset[str]
    noticed: frozenset[int]
    seen: frozenset[int]
    shadows: frozenset[tuple[str, int]]
    trained: frozenset[str]

    @property
    def is_empty(self) -> bool:
        """Whether no row per node was written since."""
        sealed = (self.runs, self.grouped, self.gone, self.noticed, self.seen, self.shadows)
        return not any((*sealed, self.trained))


def scope_since(record: AuditRecord, since: int) -> Scope:
    """Return what the entries after number `since` are about."""
    later = [entry for entry in record.entries if entry.n > since]
    return Scope(
        since=since,
        last=max((body["run"]["seq"] for body in record.bodies("decided")), default=0),
        runs=frozenset(_runs(later)),
        grouped=frozenset(_grouped(record, since)),
        gone=frozenset(
            key for e in later if e.kind in ("applied", "gone") for key in e.facts["gone"]
        ),
        noticed=frozenset(e.facts["noticed_ns"] for e in later if e.kind == "classes"),
        seen=frozenset(e.facts["seen_ns"] for e in later if e.kind == SEEN),
        shadows=frozenset(
            (e.facts["shadow"]["version"], e.facts["shadow"]["seq"])
            for e in later
            if e.kind == SHADOWED
        ),
        trained=frozenset(e.facts["version"] for e in later if e.kind == "trained"),
    )


def _runs(entries: list[ChainEntry]) -> set[int]:
    """The runs that were decided, applied, or had details removed."""
    runs: set[int] = set()
    for entry in entries:
        if entry.kind == "decided":
            runs.add(entry.facts["run"]["seq"])
        elif entry.kind == "applied":
            runs.add(entry.facts["seq"])
        elif entry.kind == REMOVED:
            runs |= {removed["seq"] for removed in entry.facts["runs"]}
    return runs


def _grouped(record: AuditRecord, since: int) -> set[int]:
    """The runs whose groups were read, those that have none among them."""
    marks = {
        after: max(
            (
                e.facts["grouped_seq"]
                for e in record.entries
                if e.kind == "marked" and (after or e.n <= since)
            ),
            default=0,
        )
        for after in (False, True)
    }
    named = {e.facts["seq"] for e in record.entries if e.kind == "grouped" and e.n > since}
    return named | set(range(marks[False] + 1, marks[True] + 1))
