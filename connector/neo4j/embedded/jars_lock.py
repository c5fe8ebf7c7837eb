"""Rewrite `jars.lock`: every jar of the embedded server with its size and SHA-256.

Run by a developer who raises `VERSION`, never by users:

    python -m ringfence.connector.neo4j.embedded.jars_lock

Maven's dependency graph is walked once, here, by jgo. That walk fetches some 350 POM files
one after the other (minutes); with its answer written down, an installation downloads exactly
the tested jars, in parallel, and can check every byte of them. The order of the lines is the
order of the class path: the JVM looks for a class jar by jar, so the busiest come first.
"""

import hashlib
from pathlib import Path

import jgo

from ringfence.connector.neo4j.embedded.jars import LOCK_FILE, VERSION

ENDPOINT = f"org.neo4j:neo4j:{VERSION}+org.neo4j:neo4j-bolt:{VERSION}"


def _line(path: Path, repository: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{digest} {path.stat().st_size} {path.relative_to(repository).as_posix()}\n"


def _order(line: str) -> tuple[bool, str]:
    path = line.split()[2]
    return not path.startswith(("org/neo4j/", "org/scala-lang/", "org/eclipse/collections/")), path


def main() -> None:
    """Resolve `ENDPOINT` with jgo and write one line per jar: SHA-256, bytes, Maven path."""
    artifacts = jgo.resolve(ENDPOINT)
    repository = artifacts[0].context.repo_cache
    lines = sorted({_line(a.resolve(), repository) for a in artifacts}, key=_order)
    LOCK_FILE.write_text("".join(lines), encoding="ascii")
    print(f"{LOCK_FILE}: {len(lines)} jars for {ENDPOINT}")


if __name__ == "__main__":
    main()
