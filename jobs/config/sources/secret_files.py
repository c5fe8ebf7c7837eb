"""Secrets from files: `RINGFENCE_NEO4J_PASSWORD_FILE=/run/secrets/neo4j` and so on.

A container's secrets are mounted as files; an environment can be read by whoever may list a pod.
"""

from __future__ import annotations

from pathlib import Path

from ringfence.connector.errors import ConfigError

__all__ = ["FILE_SUFFIX", "read_secret_file", "read_small_file"]

FILE_SUFFIX = "_FILE"
MAX_FILE_BYTES = 65_536


def read_secret_file(variable: str, path: str) -> str:
    """Return what the file that `variable` names holds, without the line end after it."""
    text = read_small_file(Path(path), f"the file with the secret that {variable} names")
    secret = text.removesuffix("\n").removesuffix("\r")
    if not secret.strip():
        raise ConfigError(
            found=f"the file of {variable}, {path}, is empty",
            needed="the secret in it",
            next_step=f"write it there, or: unset {variable}",
        )
    return secret


def read_small_file(path: Path, needed: str) -> str:
    """Return the text of a file of at most `MAX_FILE_BYTES`; its content is in no message."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) <= MAX_FILE_BYTES:
            return content.decode("utf-8-sig")
        reason = f"is larger than {MAX_FILE_BYTES} bytes"
    except OSError as error:
        reason = f"can't be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = "is no text in UTF-8"
    raise ConfigError(
        found=f"{path} {reason}", needed=needed, next_step="correct the path, or the file"
    )
