"""Everything ringfence raises on purpose.

RingfenceError
├── ConfigError        a setting in the file or the environment is invalid
├── ServerError        Neo4j can't be reached, started or used
├── GraphError         the graph is reachable, but isn't as the configuration says
├── StoreError         the SQL audit store can't be used
│   ├── LeaseHeld      another process works on this project now
│   ├── LeaseLost      another process took over while this one was away
│   └── WrongVersion   the store is newer than this code, or not migrated yet
├── FolderError        the disk of mirror, models and key is full or can't be written
└── ModelError         no model, or one that doesn't fit the graph or its own manifest
"""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "FolderError",
    "GraphError",
    "LeaseHeld",
    "LeaseLost",
    "ModelError",
    "RingfenceError",
    "ServerError",
    "StoreError",
    "WrongVersion",
    "describe_error",
]


class RingfenceError(Exception):
    """An error in three parts: what was found, what was needed, what to type next."""

    def __init__(self, *, found: str, needed: str = "", next_step: str = "") -> None:
        super().__init__(found)
        self.found = found
        self.needed = needed
        self.next_step = next_step

    def __str__(self) -> str:
        parts = [self.found]
        if self.needed:
            parts.append(f"needed: {self.needed}")
        if self.next_step:
            parts.append(f"next:   {self.next_step}")
        return "\n".join(parts)


class ConfigError(RingfenceError):
    """A setting in the file or the environment is invalid."""


class ServerError(RingfenceError):
    """Neo4j can't be reached, started or used."""


class GraphError(RingfenceError):
    """The graph is reachable, but isn't as the configuration says."""


class StoreError(RingfenceError):
    """The SQL audit store can't be used."""


class LeaseHeld(StoreError):
    """Another process works on this project now."""


class LeaseLost(StoreError):
    """Another process took over while this one was away."""


class WrongVersion(StoreError):
    """The store is newer than this code, or not migrated yet."""


class FolderError(RingfenceError):
    """The disk of mirror, models and key is full or can't be written."""


class ModelError(RingfenceError):
    """No model, or one that doesn't fit the graph or its own manifest."""


def describe_error(error: Exception) -> str:
    """Return an error on one line, for logs and records that keep no value of the graph.

    Found, needed and next of an error of ours; of any other its type alone, since the message of a
    defect may hold values.

    >>> error = RingfenceError(found="no model", needed="a model", next_step="ringfence train")
    >>> describe_error(error)
    'no model; needed: a model; next: ringfence train'
    >>> describe_error(ValueError("could not convert string to float: 'DE44 5001 0517'"))
    'ValueError; please report it'
    """
    if not isinstance(error, RingfenceError):
        return f"{type(error).__name__}; please report it"
    parts = (
        error.found,
        error.needed and f"needed: {error.needed}",
        error.next_step and f"next: {error.next_step}",
    )
    return "; ".join(" ".join(part.split()) for part in parts if part)
