"""Comparisons of model versions on the holdout: results and times, sealed by the chain.

Promotions and statements about a model rely on these rows: each has a chain entry with the digest
of its result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from ringfence.connector.json_types import JsonObject
from ringfence.connector.store import chain
from ringfence.connector.store.chain import next_number
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
    def values(self) -> Mapping[str, Any]:
        """The result as JSON values."""
        parsed: Mapping[str, Any] = json.loads(self.result)
        return parsed

    def sealed(self) -> JsonObject:
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
        n = next_number(connection, project, comparison, ("comparison", "n"))
        stored = StoredComparison(n, now, version, against, dumps(result))
        connection.execute(insert(comparison).values(project=project, **asdict(stored)))
        chain.append(connection, project, writer.key, KIND, {"comparison": stored.sealed()})
    return stored


def read_comparisons(connection: Connection, project: str) -> list[StoredComparison]:
    """Return every comparison, oldest first."""
    columns = [comparison.c[name] for name in StoredComparison.__dataclass_fields__]
    query = select(*columns).where(comparison.c.project == project).order_by(comparison.c.n)
    return [StoredComparison(*row) for row in connection.execute(query)]


def comparisons_of(store: Store, project: str) -> list[StoredComparison]:
    """Return every comparison, oldest first."""
    with store.reading() as connection:
        return read_comparisons(connection, project)
