"""The server's jars: which ones, where they lie, and which are missing.

`jars.lock` names every jar with its size and SHA-256. They are kept where Maven keeps its own
(`~/.m2/repository`, or `M2_REPO`), so a machine that has some of them downloads only the rest.
A start with all jars present touches no network: it reads the lock and compares every jar's hash,
for the folder belongs to other programs too, and what lies there is run (0.3 s of CPU for 176 MB).
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["VERSION", "Jar", "ServerProgress", "class_path", "locked_jars", "repository_folder"]

VERSION = "2026.08.1"
LOCK_FILE = Path(__file__).with_name("jars.lock")


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked file: its path in a Maven repository, its size in bytes and its SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ServerProgress:
    """How far a start has come: `stage` is "download" or "start"; the counts are of the jars."""

    stage: str
    jars_done: int
    jars_total: int
    bytes_done: int
    bytes_total: int


def locked_jars() -> tuple[Jar, ...]:
    """Every jar of the server, as `jars.lock` has them.

    >>> any(jar.path.endswith("/neo4j-bolt-2026.08.1.jar") for jar in locked_jars())
    True
    """
    lines = (line.split() for line in LOCK_FILE.read_text(encoding="ascii").splitlines())
    return tuple(Jar(path, int(size), digest) for digest, size, path in lines)


def repository_folder() -> Path:
    """The local Maven repository: `M2_REPO` where set, else `~/.m2/repository`."""
    configured = os.environ.get("M2_REPO")
    return Path(configured) if configured else Path.home() / ".m2" / "repository"


def repository_address() -> str:
    """The Maven repository to download from: `RINGFENCE_MAVEN_URL` where set, else Central."""
    from jgo.constants import MAVEN_CENTRAL_URL  # jgo is slow to import and rarely needed

    return os.environ.get("RINGFENCE_MAVEN_URL", str(MAVEN_CENTRAL_URL)).rstrip("/")


def class_path(progress: Callable[[ServerProgress], None] | None = None) -> list[Path]:
    """The jars' paths on this machine; what is missing or not as locked is downloaded first.

    `progress` is called from this thread, several times a second, while a download runs.
    Raises ServerError when a jar can't be had.
    """
    folder, jars = repository_folder(), locked_jars()
    missing = [jar for jar in jars if not _is_present(folder / jar.path, jar)]
    if missing:
        from ringfence.connector.neo4j.embedded.download import download

        download(missing, folder, repository_address(), progress or (lambda _: None))
    return [folder / jar.path for jar in jars]


def _is_present(path: Path, jar: Jar) -> bool:
    try:
        if path.stat().st_size != jar.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False
