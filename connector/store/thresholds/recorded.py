"""The thresholds of a run, and the sets at the alphas after the first, in SQL."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from ringfence.connector.prediction_table import FurtherSet, FurtherSizes
from ringfence.connector.records import Threshold
from ringfence.connector.store.blocks import ROWS_PER_STATEMENT, insert_columns, split
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.rows import threshold_columns, threshold_from_row
from ringfence.connector.store.tables import further_set, threshold


def insert_thresholds(
    connection: Connection, project: str, seq: int, thresholds: Sequence[Threshold]
) -> None:
    """Write a run's thresholds inside the transaction that decides it."""
    for part in split(thresholds):
        values = [threshold_columns(project, seq, threshold_) for threshold_ in part]
        connection.execute(insert(threshold), values)


def insert_further_sets(connection: Connection, project: str, seq: int, sets: FurtherSizes) -> str:
    """Write the sizes of the sets at the alphas after the first; return their `further_digest`."""
    digest, comma = hashlib.sha256(b"["), ""
    for block in sets.blocks_by_key(ROWS_PER_STATEMENT):
        insert_columns(connection, further_set, block, {"project": project, "seq": seq})
        rows = zip(*block.values(), strict=True)
        digest.update((comma + dumps(list(rows))[1:-1]).encode())
        comma = ","
    digest.update(b"]")
    return digest.hexdigest()


def thresholds_of(store: Store, project: str, seq: int) -> list[Threshold]:
    """Return a run's thresholds, by alpha, class and the order in which they were decided."""
    with store.reading() as connection:
        return read_thresholds(connection, project, seq)


def read_thresholds(connection: Connection, project: str, seq: int) -> list[Threshold]:
    """Do what `thresholds_of` does inside the caller's transaction."""
    query = select(threshold).where(threshold.c.project == project, threshold.c.seq == seq)
    rows = [threshold_from_row(row) for row in connection.execute(query)]
    return sorted(
        rows,
        key=lambda threshold_: (threshold_.alpha, threshold_.class_, band_place(threshold_.band)),
    )


def thresholds_digest(thresholds: Sequence[Threshold]) -> str:
    """Return one hash over thresholds, in an order that does not depend on theirs."""
    rows = sorted(dumps(threshold_columns("", 0, threshold_)) for threshold_ in thresholds)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def further_digest(sets: Sequence[FurtherSet]) -> str:
    """Return one hash over the sets at the alphas after the first, in the order of their keys."""
    rows = sorted((set_.node_key, set_.alpha, set_.size) for set_ in sets)
    return hashlib.sha256(dumps(rows).encode()).hexdigest()


def band_place(band: str) -> tuple[Any, ...]:
    """Degree bands in the order of their lower ends; other strata by name.

    >>> sorted(["10+", "2-4", "0-1", "5-9"], key=band_place)
    ['0-1', '2-4', '5-9', '10+']
    """
    low = band.partition("-")[0].rstrip("+")
    return (int(low), band) if low.isdigit() else (-1, band)
