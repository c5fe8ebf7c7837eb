"""Who writes: user, host, process and verb, as every entry of the chain names them.

The user is the operating system's, by the process and not by its environment; for what is done in
the dashboard, the dashboard's. The verb is the command line's, the scheduler's with its job, or
`python` for a program that uses the library.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_verb: ContextVar[str] = ContextVar("ringfence_verb", default="python")
_user: ContextVar[str | None] = ContextVar("ringfence_user", default=None)


def set_verb(verb: str) -> None:
    """Name what this process does, from here on."""
    _verb.set(verb)


@contextmanager
def acting_as(verb: str, user: str | None = None) -> Iterator[None]:
    """Name what is done for the length of a `with` block, in this thread, and for which user."""
    verb_token, user_token = _verb.set(verb), _user.set(user)
    try:
        yield
    finally:
        _verb.reset(verb_token)
        _user.reset(user_token)


def current_actor() -> dict[str, str | int]:
    """Return user, host, process and verb.

    >>> with acting_as("serve", "anna"):
    ...     current_actor()["verb"], current_actor()["user"]
    ('serve', 'anna')
    """
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "user": _user.get() or system_user(),
        "verb": _verb.get(),
    }


def system_user() -> str:
    """Return the name of the process's user; its number where the system has no name for it."""
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):
        return str(os.geteuid()) if hasattr(os, "geteuid") else ""


def describe_actor() -> str:
    """Return the same in words, for a process that finds a file in use.

    >>> with acting_as("score"):
    ...     describe_actor().startswith("score (process ")
    True
    """
    actor = current_actor()
    return f"{actor['verb']} (process {actor['process']} on {actor['host']})"
