"""The id of the run that this thread is in: one per verb or scheduled job, on every log line.

It is 32 hexadecimal digits, so that it can be the id of an OpenTelemetry trace as well.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str | None] = ContextVar("ringfence_run_id", default=None)


def current_run_id() -> str | None:
    """Return the id of the run that is under way here, if any."""
    return _current.get()


@contextmanager
def run_scope() -> Iterator[str]:
    """Give the block a run id; inside another run it keeps that one's id.

    >>> with run_scope() as outer, run_scope() as inner:
    ...     outer == inner == current_run_id(), len(outer)
    (True, 32)
    """
    if (current := _current.get()) is not None:
        yield current
        return
    made = secrets.token_hex(16)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)
