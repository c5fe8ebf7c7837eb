"""Who writes: host, process and verb, as every entry of the chain names them.

The verb is the command line's, the scheduler's with its job, or `python` for a program that uses
the library.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_verb: ContextVar[str] = ContextVar("ringfence_verb", default="python")


def set_verb(verb: str) -> None:
    """Name what this process does, from here on."""
    _verb.set(verb)


@contextmanager
def acting_as(verb: str) -> Iterator[None]:
    """Name what is done for the length of a `with` block, in this thread."""
    token = _verb.set(verb)
    try:
        yield
    finally:
        _verb.reset(token)


def current_actor() -> dict[str, str | int]:
    """Return host, process and verb.

    >>> with acting_as("score"):
    ...     current_actor()["verb"]
    'score'
    """
    return {"host": socket.gethostname(), "process": os.getpid(), "verb": _verb.get()}
