"""Digests over blocks of rows from texts that the database makes, without an object per row.

The texts are, byte by byte, those that the chain's digests were made of. Where a database writes
some letter otherwise, the digest differs although the rows do not: a caller that finds a difference
compares the block once more by Python's texts, which are the definition.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Text, and_, case, cast, func, literal, select

from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.tables import grouping, label, prediction

ROWS_PER_FETCH = 5_000


@dataclass(frozen=True, slots=True)
class RunDigests:
    """Digests over the predictions of a run, and how many they are; None where not asked for."""

    nodes: int
    payload: str
    degrees: str | None = None
    bands: str | None = None


@dataclass(frozen=True, slots=True)
class BlockDigest:
    """A digest over some rows, and how many they are."""

    rows: int
    digest: str


def digest_run(
    connection: Connection, project: str, seq: int, *, payload_only: bool = False
) -> RunDigests:
    """Return digests over a run's predictions, in the order of their keys."""
    of, quote = prediction.c, _Quoting(connection)
    key = quote.as_json(of.node_key)
    columns = [_join("[", key, ",", of.classes, ",", of.p_values, ",", of.scores, "]")]
    if not payload_only:
        columns += [
            _join("[", key, ",", cast(of.degree, Text), "]"),
            _join("[", key, ",", quote.as_json(of.band), "]"),
        ]
    query = select(*columns).where(of.project == project, of.seq == seq)
    hashes = [hashlib.sha256() for _ in columns]
    nodes = 0
    ordered = query.order_by(quote.by_bytes(of.node_key))
    result = connection.execute(ordered, execution_options={"yield_per": ROWS_PER_FETCH})
    for rows in result.partitions():
        nodes += len(rows)
        for hash_, texts in zip(hashes, zip(*rows, strict=True), strict=True):
            hash_.update("".join(texts).encode())
    return RunDigests(nodes, *(hash_.hexdigest() for hash_ in hashes))


def digest_labels(connection: Connection, project: str) -> dict[int, BlockDigest]:
    """Return a digest over all values of the label rows of each time of notice.

    Quotes inside a key or class are not escaped. Such a row could look like two, and the number of
    rows then tells: each row has at least one list, and the sealed text has as many as rows.
    """
    of, quote = label.c, _Quoting(connection)
    row = _join(
        '["', of.node_key, '","', of.label, '",', func.coalesce(cast(of.happened_ns, Text), "null"),
        ",", _as_boolean(of.covered), ",", _as_boolean(of.covered_naive), ",",
        _as_boolean(of.unseen), "]",
    )  # fmt: skip
    query = select(of.noticed_ns.label("block"), row.label("row")).where(of.project == project)
    return _digest_blocks(connection, query.order_by(of.noticed_ns, quote.by_bytes(of.node_key)))


def digest_groups(connection: Connection, project: str) -> dict[int, BlockDigest]:
    """Return a digest over the groups of each run's nodes."""
    of, quote = grouping.c, _Quoting(connection)
    row = _join(
        "[", quote.as_json(of.node_key), ",", quote.as_json(of.property), ",",
        quote.as_json(of.value), "]",
    )  # fmt: skip
    same = and_(of.project == prediction.c.project, of.node_key == prediction.c.node_key)
    columns = prediction.c.seq.label("block"), row.label("row")
    query = select(*columns).join(prediction, same).where(of.project == project)
    by_key = quote.by_bytes(of.node_key), quote.by_bytes(of.property)
    return _digest_blocks(connection, query.order_by(prediction.c.seq, *by_key))


class _Quoting:
    """How an engine writes JSON texts, and sorts them as Python does."""

    def __init__(self, connection: Connection) -> None:
        self._dialect = DIALECTS[connection.dialect.name]

    def as_json(self, column: Any) -> Any:
        written = cast(getattr(func, self._dialect.json_text)(column), Text)
        return func.coalesce(written, "null")

    def by_bytes(self, column: Any) -> Any:
        return column.collate(self._dialect.byte_order)


def _as_boolean(column: Any) -> Any:
    return case((column.is_(True), "true"), (column.is_(False), "false"), else_="null")


def _join(*parts: Any) -> Any:
    text: Any = literal("")
    for part in parts:
        text = text.concat(part)
    return text


def _digest_blocks(connection: Connection, ordered: Any) -> dict[int, BlockDigest]:
    """Digest rows of a block's number and a text by block, in the order of the query."""
    rows = ordered.subquery()
    text = func.aggregate_strings(rows.c.row, "")
    query = select(rows.c.block, func.count(), text).group_by(rows.c.block)
    return {
        int(block): BlockDigest(int(count), hashlib.sha256(text.encode()).hexdigest())
        for block, count, text in connection.execute(query)
    }
