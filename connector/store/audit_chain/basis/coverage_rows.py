"""Coverage rows against the entries of the audits that wrote them.

A row that is on record keeps its judgement as long as its counts stay, and alarms judge rows: so an
audit compares them before it counts, and again before rules judge them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, select

from ringfence.connector.records import NAMED_SLICES
from ringfence.connector.store.audit_chain.preflight_check import refuse_difference
from ringfence.connector.store.audit_chain.sealed_entries import Body, SealedEntries
from ringfence.connector.store.tables import coverage

AUDITED = "audited"
DEFAULTS: Mapping[str, Any] = {
    "first_alpha": True, "own_promise": False, "mean_size_naive": None,
}  # fmt: skip
Row = Mapping[str, Any]


def require_coverage_rows(connection: Connection, project: str, sealed: SealedEntries) -> None:
    """Raise `StoreError` where coverage rows are not those that audits left."""
    query = select(coverage).where(coverage.c.project == project)
    rows = [row._asdict() for row in connection.execute(query)]
    for difference in find_coverage_differences(sealed.of_kind(AUDITED), rows, {}):
        refuse_difference(difference)


def find_coverage_differences(
    bodies: Iterable[Body], rows: Iterable[Row], first_alphas: Mapping[int, float]
) -> Iterator[str]:
    """Yield the coverage rows that are not as the chain has them.

    Args:
        bodies: of the entries `audited`, oldest first.
        rows: of the table `coverage`.
        first_alphas: of runs, by number; a row at another alpha is named with it.
    """
    recorded = _recorded(bodies)
    stored = {_id_of(row): row for row in rows}
    for id_ in sorted({*recorded, *stored}):
        seq, slice_, name, alpha = id_
        named = f" {name!r}" if name else ""
        at = "" if first_alphas.get(seq) == alpha else f" at alpha {alpha:g}"
        where = f"coverage of run {seq}, {slice_}{named}{at}"
        if id_ not in recorded:
            yield f"{where}: the row was never recorded by an audit"
        elif id_ not in stored:
            # older versions sealed no removal of rows that move on to a model's last run
            if recorded[id_][1] or slice_ not in NAMED_SLICES:
                yield f"{where}: the row is gone"
        elif changed := [n for n, value in recorded[id_][0].items() if stored[id_][n] != value]:
            yield f"{where}: {', '.join(changed)} changed after the audit"


def _recorded(bodies: Iterable[Body]) -> dict[tuple[Any, ...], tuple[Row, bool]]:
    """The newest sealed row of each id, and whether its entry would seal that it went."""
    recorded: dict[tuple[Any, ...], tuple[Row, bool]] = {}
    for body in bodies:
        for row in body["coverage"]:
            recorded[_id_of(row)] = DEFAULTS | row, "gone" in body
        for seq, slice_, name, *alpha in body.get("gone", ()):
            for id_ in [row_id for row_id in recorded if row_id[:3] == (seq, slice_, name)]:
                if not alpha or id_[3] == alpha[0]:  # older entries: a run had one alpha
                    recorded.pop(id_)
    return recorded


def _id_of(row: Row) -> tuple[int, str, str, float]:
    return row["seq"], row["slice"], row["name"], row["alpha"]
