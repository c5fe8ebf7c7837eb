"""One seal over all nodes that joined a model's calibration, which each run extends by its own.

A run's chain entry has a hash of the nodes that joined by it (`rows`), and in `through` a hash of
that and of the `through` before it: deciding a run costs only as much as its own nodes. A run that
begins compares all of them with the newest entry. For this the database makes one text of each
run's nodes, so that no object is made per node; where that text is another one than Python's (a
letter that the two escape differently), or too long for the database, Python makes it. Entries of
older versions have one hash of all rows instead (`all_rows`), which the first run after them
replaces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Text, cast, func, literal, select
from sqlalchemy.exc import DBAPIError

from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import JoinedNode
from ringfence.connector.store.calibration.joined import joined_digest
from ringfence.connector.store.chain import newest_of_kind
from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.tables import joined

THROUGH, ALL_ROWS = "through", "all_rows"
EMPTY_DIGEST = hashlib.sha256().hexdigest()
"""Seal of a version that no node has joined."""

DigestOfRun = tuple[int, str]


def joined_facts(
    connection: Connection, project: str, version: str, seq: int, nodes: Sequence[JoinedNode]
) -> JsonObject:
    """Return digests for run `seq`'s chain entry: of nodes that join by it, and of all so far.

    Call it after the run's nodes were written and before its entry is.
    """
    rows = joined_digest(nodes)
    before = _recorded_before(connection, project, version)
    if THROUGH in before:
        through = extended(before[THROUGH], [(seq, rows)] if nodes else [])
    else:  # the version's first run, or the first one after an older version of ringfence
        through = seal_by_objects(connection, project, version)
    return {"nodes": len(nodes), "rows": rows, THROUGH: through}


def is_as_recorded(
    connection: Connection, project: str, version: str, recorded: Mapping[str, Any]
) -> bool:
    """Whether the joined nodes are those that a run's entry has; empty: none had joined."""
    try:
        if THROUGH not in recorded:
            all_rows: str = recorded.get(ALL_ROWS, EMPTY_DIGEST)
            return all_rows == _all_rows_digest(connection, project, version)
        return recorded[THROUGH] in (
            seal(connection, project, version) for seal in (seal_by_text, seal_by_objects)
        )
    except TypeError:  # bytes in place of a text, which SQLite keeps: no run wrote them
        return False


def seal_by_text(connection: Connection, project: str, version: str) -> str | None:
    """Return the seal of all joined nodes, quickly, from texts that the database makes.

    None if it can't: a text holds a gigabyte at most, and the nodes of a run may need more.
    """
    try:
        with connection.begin_nested():  # after an error PostgreSQL goes on from here alone
            return extended(EMPTY_DIGEST, _digests_by_text(connection, project, version))
    except DBAPIError:
        return None


def seal_by_objects(connection: Connection, project: str, version: str) -> str:
    """Return the seal of all joined nodes from Python's texts: the definition."""
    return extended(EMPTY_DIGEST, _digests_by_objects(connection, project, version))


def extended(sealed: str, runs: Iterable[DigestOfRun]) -> str:
    """Return the seal after further runs, in the order of their numbers.

    >>> first, both = [(1, "a")], [(1, "a"), (4, "b")]
    >>> extended(extended(EMPTY_DIGEST, first), both[1:]) == extended(EMPTY_DIGEST, both)
    True
    """
    for seq, rows in runs:
        sealed = hashlib.sha256(f"{sealed} {seq} {rows}".encode()).hexdigest()
    return sealed


def _recorded_before(connection: Connection, project: str, version: str) -> Mapping[str, Any]:
    entry = newest_of_kind(connection, project, "decided", f'%"model":{dumps(version)}%')
    return {} if entry is None else json.loads(entry.body).get("joined", {})


def _digests_by_text(connection: Connection, project: str, version: str) -> Iterator[DigestOfRun]:
    """Hash each run's nodes as `joined_digest` does, from a text that the database makes.

    The numbers are written as JSON too: SQLite lets a text stand in their place, and one with
    quotes and brackets in it would look like further rows.
    """
    dialect = DIALECTS[connection.dialect.name]

    def as_json(column: Any) -> Any:
        return cast(getattr(func, dialect.json_text)(column), Text)

    node = joined.c
    row = literal("[").concat(as_json(node.node_key)).concat(",")
    row = row.concat(as_json(node.evaluated_seq)).concat(",").concat(as_json(node.label))
    by_key = (
        select(node.seq, row.concat("]").label("row"))
        .where(node.project == project, node.version == version)
        .order_by(node.seq, node.node_key.collate(dialect.byte_order))
        .subquery()
    )
    query = select(by_key.c.seq, func.aggregate_strings(by_key.c.row, ""))
    for seq, text in connection.execute(query.group_by(by_key.c.seq).order_by(by_key.c.seq)):
        yield seq, hashlib.sha256(text.encode()).hexdigest()


def _digests_by_objects(
    connection: Connection, project: str, version: str
) -> Iterator[DigestOfRun]:
    """Hash each run's nodes in Python."""
    for seq, rows in groupby(_rows(connection, project, version), key=lambda row: row[0]):
        yield seq, joined_digest(JoinedNode(key, ran, label) for _, key, ran, label in rows)


def _all_rows_digest(connection: Connection, project: str, version: str) -> str:
    """Return the hash of all joined nodes that entries of older versions have."""
    digest = hashlib.sha256()
    for row in sorted(tuple(row) for row in _rows(connection, project, version)):
        digest.update(dumps(list(row)).encode())  # not in the order of a database's collation
    return digest.hexdigest()


def _rows(connection: Connection, project: str, version: str) -> Iterator[Any]:
    columns = (joined.c.seq, joined.c.node_key, joined.c.evaluated_seq, joined.c.label)
    query = select(*columns).where(joined.c.project == project, joined.c.version == version)
    return iter(connection.execute(query.order_by(joined.c.seq)))
