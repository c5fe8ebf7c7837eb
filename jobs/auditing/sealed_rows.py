"""Coverage rows that are on record already keep their judgement as long as their counts stay.

A row is sealed with its band, verdict and sentence. When it is counted again with the same result,
another version of ringfence, or another draw of a simulated law, must not give it other words: what
somebody has read stays on record. A row whose counts changed is judged anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from ringfence.connector.records import CoverageRow

JUDGED = (
    "low", "high", "p_value", "anytime_low", "anytime_p", "raised_by", "verdict", "words",
)  # fmt: skip
"""Columns that follow from the counts and the law; all others are counts or say of what."""

COUNTED = tuple(field.name for field in fields(CoverageRow) if field.name not in JUDGED)


def keep_sealed(rows: Sequence[CoverageRow], sealed: Iterable[CoverageRow]) -> list[CoverageRow]:
    """Return the rows, each with the judgement on record where its counts are those on record.

    A total is judged by the counts of each of its runs, so it keeps its judgement only where no
    run of the same model up to its own has changed.
    """
    on_record = {_id(row): row for row in sealed}
    same = {_id(row) for row in rows if _has_counts(row, on_record.get(_id(row)))}
    first_changed: dict[str, int] = {}
    for row in rows:
        if row.slice == "run" and _id(row) not in same:
            first_changed[row.model] = min(row.seq, first_changed.get(row.model, row.seq))
    return [
        _judged_as(row, on_record[_id(row)])
        if _id(row) in same
        and (row.slice == "run" or row.seq < first_changed.get(row.model, row.seq + 1))
        else row
        for row in rows
    ]


def _has_counts(row: CoverageRow, before: CoverageRow | None) -> bool:
    """Whether a row on record was judged by the same counts; one that had to wait was not."""
    if before is None or before.verdict == "not enough known yet":
        return False
    return all(getattr(row, name) == getattr(before, name) for name in COUNTED)


def _judged_as(row: CoverageRow, before: CoverageRow) -> CoverageRow:
    return replace(row, **{name: getattr(before, name) for name in JUDGED})


def _id(row: CoverageRow) -> tuple[int, str, str, float]:
    return row.seq, row.slice, row.name, row.alpha
