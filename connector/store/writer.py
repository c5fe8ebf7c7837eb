"""A writer of the audit store: a process that holds the lease and the audit chain's key."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from ringfence.connector.store.engine import Store
from ringfence.connector.store.lease import Lease, renew


@dataclass(frozen=True, slots=True)
class Writer:
    """The store under a held lease, with the audit chain's key."""

    store: Store
    lease: Lease
    key: bytes

    def begin(self, connection: Connection) -> int:
        """Renew the lease as the first statement; return the database's time."""
        renew(self.store, connection, self.lease)
        return self.store.now_ns(connection)
