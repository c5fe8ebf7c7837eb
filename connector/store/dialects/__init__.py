"""The SQL engines that can hold an audit store: one file and one line here for each.

A new engine also needs its part of the triggers and views in `migrations/sql`.
"""

from __future__ import annotations

from ringfence.connector.store.dialects.base import Dialect
from ringfence.connector.store.dialects.postgresql import POSTGRESQL
from ringfence.connector.store.dialects.sqlite import SQLITE

__all__ = ["DIALECTS", "Dialect"]

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (SQLITE, POSTGRESQL)}
