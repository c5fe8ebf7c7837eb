"""Rows about shadow sets derived again: counts by the sets and the classes that were known then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ringfence.connector.store.queries import derivation_rows as rows
from ringfence.connector.store.shadow.coverage import COUNTS
from ringfence.jobs.integrity.derivation.findings import Findings
from ringfence.jobs.integrity.derivation.history import Body, History

SUBJECT = "rows about shadow sets"


class _ShadowSet(NamedTuple):
    """A candidate's set of a node: its size, and the classes in it."""

    node: int
    size: int
    classes: frozenset[str]


class ShadowRows:
    """Derives what audits counted of candidates' sets, one entry after the other."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._sets: dict[tuple[str, int], list[_ShadowSet]] = {}

    def derive(self, body: Body, findings: Findings) -> None:
        """Compare the rows of an entry."""
        for row in body["rows"]:
            findings.compare(SUBJECT, *self._problems(row))

    def _problems(self, row: Body) -> Iterator[str]:
        expected = self._expected(self._sets_of(row["version"], int(row["seq"])))
        wrong = [
            f"{name} is {row[name]}, expected {count}"
            for name, count in zip(COUNTS, expected, strict=True)
            if row[name] != count
        ]
        if wrong:
            yield f"shadow_coverage of {row['version']} in run {row['seq']}: {', '.join(wrong)}"

    def _expected(self, sets: Sequence[_ShadowSet]) -> Sequence[int]:
        """Counts in the order of `COUNTS`, with the classes known so far."""
        history = self.history
        known = [(shadow, history.known[shadow.node]) for shadow in sets]
        held = [
            (class_.label in shadow.classes, class_.covered)
            for shadow, class_ in known
            if class_ is not None
        ]
        sizes = [(shadow.size, history.size[shadow.node]) for shadow in sets]
        return (
            len(sets),
            len(held),
            sum(hit for hit, _ in held),
            sum(active for _, active in held),
            sum(hit and active for hit, active in held),
            sum(size for size, _ in sizes),
            sum(active for _, active in sizes),
            sum((size - active) ** 2 for size, active in sizes),
        )

    def _sets_of(self, version: str, seq: int) -> list[_ShadowSet]:
        if (version, seq) not in self._sets:
            reader, place = self.history.reader, self.history.place
            stored: Sequence[Any] = rows.shadow_sets(
                reader.connection, reader.project, version, seq
            )
            self._sets[version, seq] = [
                _ShadowSet(place[row.node_key], row.size, frozenset(json.loads(row.classes)))
                for row in stored
            ]
        return self._sets[version, seq]
