"""Comparisons of model versions on the holdout: what was found, when, under the chain's seal.

Promotions and the words about a model rest on these rows: each has a chain entry with the digest
of its result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select

from ringfence.connector.store import chain
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.lifecycle.tables import comparison
from ringfence.connector.store.writer import Writer

KIND = "compared"
"""Kind of the chain's entries about these rows."""


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """One comparison as SQL holds it; `result` is JSON text, `against` the other version."""

    n: int
    at_ns: int
    version: str
    against: str | None
    result: str

    @property
    def found(self) -> Mapping[str, Any]:
        """The result as JSON values."""
        values: Mapping[str, Any] = json.loads(self.result)
        return values

    def sealed(self) -> dict[str, Any]:
        """Return what the chain holds of it."""
        digest = hashlib.sha256(self.result.encode()).hexdigest()
        return {name: value for name, value in asdict(self).items() if name != "result"} | {
            "result_sha256": digest
        }


def record_comparison(
    writer: Writer, version: str, against: str | None, result: Mapping[str, Any]
) -> StoredComparison:
    """Write row and chain entry in a transaction of their own."""
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        newest = select(func.max(comparison.c.n)).where(comparison.c.project == project)
        n = int(connection.execute(newest).scalar() or 0) + 1
        one = StoredComparison(n, now, version, against, dumps(result))
        connection.execute(insert(comparison).values(project=project, **asdict(one)))
        chain.append(connection, project, writer.key, KIND, {"comparison": one.sealed()})
    return one


def read_comparisons(connection: Connection, project: str) -> list[StoredComparison]:
    """Return every comparison, oldest first."""
    columns = [comparison.c[name] for name in StoredComparison.__dataclass_fields__]
    query = select(*columns).where(comparison.c.project == project).order_by(comparison.c.n)
    return [StoredComparison(*row) for row in connection.execute(query)]


def comparisons_of(store: Store, project: str) -> list[StoredComparison]:
    """Return every comparison, oldest first."""
    with store.reading() as connection:
        return read_comparisons(connection, project)
