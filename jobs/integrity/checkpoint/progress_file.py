"""How far a full verification has come, in a file: one that was interrupted goes on from there.

    <folder>/projects/<project>/full-verification.json

The file has the runs that were compared and fitted, and the chain's newest entry when it began. It
is sealed with the chain's key, and left aside where that, the entry or the version of ringfence is
another one. Runs that entries since then are about are compared again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringfence.connector.files import make_private_folder, write_atomically
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.engine import dumps

FILE = "full-verification.json"
SECONDS_BETWEEN_WRITES = 1.0
MAX_AGE_DAYS = 7.0
NS_PER_DAY = 86_400_000_000_000


@dataclass(slots=True)
class RunTurn:
    """Which runs one part of a verification has done, across interruptions.

    `nodes` has the number of nodes of each run, in which `progress` counts.
    """

    what: str
    done: set[int] = field(default_factory=set)
    nodes: Mapping[int, int] = field(default_factory=dict)
    progress: Progress = no_progress
    save: Callable[[], None] = lambda: None
    _passed: int = 0

    def left(self, seqs: Iterable[int]) -> list[int]:
        """Return those of some runs that are still to be compared."""
        runs = list(seqs)
        self._passed = sum(self.nodes.get(seq, 0) for seq in runs if seq in self.done)
        self._report()
        return [seq for seq in runs if seq not in self.done]

    def end(self, seq: int, *, clean: bool) -> None:
        """Take note of a run that was compared; one that does not fit is compared again."""
        self._passed += self.nodes.get(seq, 0)
        if clean:
            self.done.add(seq)
            self.save()
        self._report()

    def _report(self) -> None:
        self.progress(self.what, self._passed, sum(self.nodes.values()))


@dataclass(frozen=True, slots=True)
class Began:
    """When a full verification began: the chain's newest entry then, time and version."""

    entry: int
    hash: str
    at_ns: int
    software: str


class FullProgress:
    """The runs that a full verification has done, in SQL and in the graph."""

    def __init__(self, folder: Path, key: bytes, began: Began) -> None:
        self.began, self.resumed = began, 0
        self._path, self._key, self._written = folder / FILE, key, time.monotonic()
        self.rows = RunTurn("predictions compared in SQL", save=self._save_now_and_then)
        self.graph = RunTurn("predictions compared in the graph", save=self._save_now_and_then)

    def show(self, nodes: Mapping[int, int], progress: Progress) -> None:
        """Report to `progress` from now on, in nodes of runs."""
        for turn in (self.rows, self.graph):
            turn.nodes, turn.progress = nodes, progress

    def save(self) -> None:
        """Write the file."""
        make_private_folder(self._path.parent)
        began = self.began
        facts = {
            "entry": began.entry, "hash": began.hash, "at_ns": began.at_ns,
            "software": began.software,
            "rows": sorted(self.rows.done), "graph": sorted(self.graph.done),
        }  # fmt: skip
        body = dumps(facts)
        write_atomically(self._path, dumps({"body": body, "seal": _seal(self._key, body)}))
        self._written = time.monotonic()

    def remove(self) -> None:
        """Remove the file: the verification has ended."""
        self._path.unlink(missing_ok=True)

    def _save_now_and_then(self) -> None:
        if time.monotonic() - self._written >= SECONDS_BETWEEN_WRITES:
            self.save()


def resume(
    folder: Path,
    key: bytes,
    now: Began,
    hash_of: Callable[[int], str | None],
    touched_since: Callable[[int], Iterable[int]],
) -> FullProgress:
    """Return the progress of a verification that was interrupted, or of one that begins now.

    Args:
        folder: the project's own.
        key: the chain's.
        now: what a verification that begins now has.
        hash_of: the hash of a chain entry.
        touched_since: the runs that entries after one are about.
    """
    facts = _read(folder / FILE, key)
    if facts is None or facts["software"] != now.software:
        return FullProgress(folder, key, now)
    began = Began(facts["entry"], facts["hash"], facts["at_ns"], facts["software"])
    age_ns = now.at_ns - began.at_ns
    if hash_of(began.entry) != began.hash or not 0 <= age_ns <= MAX_AGE_DAYS * NS_PER_DAY:
        return FullProgress(folder, key, now)
    progress, touched = FullProgress(folder, key, began), set(touched_since(began.entry))
    progress.rows.done |= set(facts["rows"]) - touched
    progress.graph.done |= set(facts["graph"]) - touched
    progress.resumed = len(progress.rows.done)
    return progress


def _read(path: Path, key: bytes) -> dict[str, Any] | None:
    """Return what the file says; None where there is none, or another one sealed it."""
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        body, seal = str(written["body"]), str(written["seal"])
        facts = json.loads(body)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dict(facts) if hmac.compare_digest(seal.encode(), _seal(key, body).encode()) else None


def _seal(key: bytes, body: str) -> str:
    return hmac.new(key, f"{FILE}\n{body}".encode(), hashlib.sha256).hexdigest()
