"""Shadow sets in SQL: written after a run is closed, sealed by an entry of their own.

A run does not depend on them. A run whose shadow part died has no row here and never gets one: the
graph has changed since, and its sets would not be those of that run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from json.encoder import encode_basestring
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from ringfence.connector import fault_points
from ringfence.connector.json_types import JsonObject
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.records import Label
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.prediction_json import json_blocks
from ringfence.connector.store.blocks import insert_columns, split
from ringfence.connector.store.engine import Store
from ringfence.connector.store.shadow.tables import shadow_run, shadow_set
from ringfence.connector.store.writer import Writer

KIND = "shadowed"


@dataclass(frozen=True, slots=True)
class ShadowRun:
    """A candidate's part in a run, as SQL holds it; `failed` says why there are no sets."""

    version: str
    seq: int
    at_ns: int
    rule: str
    score: str
    alpha: float
    promise: str
    n_calibration: int
    n_sets: int
    failed: str | None = None


def record_shadow(writer: Writer, label_: ShadowRun, sets: PredictionTable | None) -> None:
    """Write a candidate's sets of a run with their chain entry; `at_ns` is the database's time."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        row = {**asdict(label_), "at_ns": writer.begin(connection)}
        connection.execute(insert(shadow_run).values(project=project, **row))
        digest = hashlib.sha256()
        for block in json_blocks(sets) if sets is not None else ():
            insert_columns(
                connection,
                shadow_set,
                {
                    "node_key": block.keys,
                    "size": block.sizes,
                    "classes": block.classes,
                    "p_values": block.p_values,
                },
                {"project": project, "version": label_.version, "seq": label_.seq},
            )
            _update_digest(
                digest, zip(block.keys, block.sizes, block.classes, block.p_values, strict=True)
            )
        fault_points.reach("inside shadow")
        facts: JsonObject = {"shadow": row, "sets": digest.hexdigest()}
        chain.append(connection, project, writer.key, KIND, facts)


def sets_digest(rows: Iterable[tuple[str, int, str, str]]) -> str:
    """Return one hash over keys, sizes, classes and p-values (both JSON), in the keys' order."""
    digest = hashlib.sha256()
    _update_digest(digest, sorted(rows))
    return digest.hexdigest()


def _update_digest(digest: Any, rows: Iterable[tuple[str, int, str, str]]) -> None:
    texts = [f"[{encode_basestring(key)},{size},{c},{p}]" for key, size, c, p in rows]
    digest.update("".join(texts).encode())


def cover_shadow_sets(connection: Connection, project: str, labels: Sequence[Label]) -> None:
    """Record for nodes whose class became known whether their shadow sets hold it."""
    for part in split(labels):
        known = {label_.node_key: label_.label for label_ in part}
        query = select(shadow_set.c.version, shadow_set.c.node_key, shadow_set.c.classes).where(
            shadow_set.c.project == project, shadow_set.c.node_key.in_(list(known))
        )
        values = [
            {
                "of": row.node_key,
                "by": row.version,
                "hit": known[row.node_key] in json.loads(row.classes),
            }
            for row in connection.execute(query)
        ]
        if values:
            same = (
                (shadow_set.c.project == project)
                & (shadow_set.c.version == bindparam("by"))
                & (shadow_set.c.node_key == bindparam("of"))
            )
            statement = update(shadow_set).where(same).values(covered=bindparam("hit"))
            connection.execute(statement, values)


def known_by_run(connection: Connection, project: str, version: str) -> dict[int, int]:
    """Return how many of a version's shadow sets have a known class, by run; runs without none."""
    query = (
        select(shadow_set.c.seq, func.count())
        .where(
            shadow_set.c.project == project,
            shadow_set.c.version == version,
            shadow_set.c.covered.is_not(None),
        )
        .group_by(shadow_set.c.seq)
        .order_by(shadow_set.c.seq)
    )
    return {int(seq): int(count) for seq, count in connection.execute(query)}


def newest_shadow_runs(store: Store, project: str) -> dict[str, ShadowRun]:
    """Return the newest part of each candidate in a run, by version."""
    columns = [shadow_run.c[name] for name in ShadowRun.__dataclass_fields__]
    query = select(*columns).where(shadow_run.c.project == project).order_by(shadow_run.c.seq)
    with store.reading() as connection:
        return {row.version: ShadowRun(*row) for row in connection.execute(query)}
