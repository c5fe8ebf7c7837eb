"""The names of Neo4j's driver that are used here, imported without pandas and pyarrow.

The driver imports both if they are installed, for results as frames, which ringfence never uses:
1.3 of its 1.75 CPU seconds, and 70 MB. They are hidden while the driver is imported, and available
to all other code afterwards. If one of them was imported before, nothing is hidden.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

HIDDEN = ("pandas", "pyarrow")


@contextmanager
def hide_modules(names: tuple[str, ...]) -> Iterator[None]:
    """Let an import of these modules fail in the block, unless they are imported already."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: can't be imported
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


with hide_modules(HIDDEN):
    from neo4j import (
        READ_ACCESS,
        WRITE_ACCESS,
        Driver,
        GraphDatabase,
        ManagedTransaction,
        Record,
        ResultSummary,
        Session,
        unit_of_work,
    )
    from neo4j.exceptions import (
        AuthError,
        BrokenRecordError,
        ClientError,
        ConfigurationError,
        DriverError,
        IncompleteCommit,
        Neo4jError,
        ResultFailedError,
        ServiceUnavailable,
        SessionExpired,
        TokenExpired,
        TransientError,
    )
    from neo4j.graph import Node, Path, Relationship
    from neo4j.spatial import Point
    from neo4j.time import Date, DateTime, Duration, Time
    from neo4j.vector import Vector

__all__ = [
    "READ_ACCESS",
    "WRITE_ACCESS",
    "AuthError",
    "BrokenRecordError",
    "ClientError",
    "ConfigurationError",
    "Date",
    "DateTime",
    "Driver",
    "DriverError",
    "Duration",
    "GraphDatabase",
    "IncompleteCommit",
    "ManagedTransaction",
    "Neo4jError",
    "Node",
    "Path",
    "Point",
    "Record",
    "Relationship",
    "ResultFailedError",
    "ResultSummary",
    "ServiceUnavailable",
    "Session",
    "SessionExpired",
    "Time",
    "TokenExpired",
    "TransientError",
    "Vector",
    "unit_of_work",
]
