"""Files of environment variables, one NAME=value per line, as containers and systemd read them.

`ringfence serve` and `schedule` take one per project: the variables have the names that they always
have, and count for that project alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.sources.secret_files import FILE_SUFFIX, read_small_file

__all__ = ["read_assignments", "read_environment_file", "with_environment_file"]

COMMENTS = ("#", ";")


def with_environment_file(environment: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the environment with the variables of a file, which win.

    A secret that the file gives also replaces its other form, the variable with or without `_FILE`.
    """
    given = read_environment_file(path)
    replaced = {name.removesuffix(FILE_SUFFIX) for name in given}
    kept = {
        name: value
        for name, value in environment.items()
        if name.removesuffix(FILE_SUFFIX) not in replaced
    }
    return kept | given


def read_environment_file(path: Path) -> dict[str, str]:
    """Return the variables of a file; a line that assigns nothing is refused without repeating it.

    Empty lines and lines that begin with # or ; are left out.
    """
    text = read_small_file(path, "lines NAME=value")
    for number, line in enumerate(text.splitlines(), start=1):
        name, equals, _ = line.strip().removeprefix("export ").partition("=")
        is_assignment = bool(equals) and name.strip().isidentifier()
        if line.strip() and not line.strip().startswith(COMMENTS) and not is_assignment:
            raise ConfigError(
                found=f"line {number} of {path} assigns no variable",
                needed="lines NAME=value, such as RINGFENCE_SERVE_TOKEN=…",
                next_step="correct that line",
            )
    return read_assignments(text)


def read_assignments(text: str) -> dict[str, str]:
    """Return what lines NAME=value assign; quotes around a value are no part of it.

    >>> read_assignments('# a comment\\nexport A="x=y"\\nB = z')
    {'A': 'x=y', 'B': 'z'}
    """
    names = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith(COMMENTS):
            names[name.strip()] = _unquoted(value.strip())
    return names


def _unquoted(value: str) -> str:
    """Return a value without the quotes around it.

    >>> _unquoted('"a=b"'), _unquoted("a'b")
    ('a=b', "a'b")
    """
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value
