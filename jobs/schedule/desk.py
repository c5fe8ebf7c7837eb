"""One project in the scheduler: looks for what is due, runs it, writes down how it ended.

`look` and `ring` are called from threads of their own; neither raises where a store or a server is
away. What can't be written then is kept and written by the first look that finds the store again.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

from ringfence.connector import migrate_sql, schedules
from ringfence.connector.errors import (
    FolderError,
    LeaseHeld,
    LeaseLost,
    RingfenceError,
    ServerError,
    StoreError,
)
from ringfence.connector.schedules import Claim, Ended
from ringfence.connector.store import Store
from ringfence.jobs.audit_store import open_audit
from ringfence.jobs.schedule.jobs import JOBS
from ringfence.jobs.schedule.logs import event, one_line
from ringfence.jobs.schedule.planning import planned, triggers
from ringfence.jobs.settings import Settings
from ringfence.jobs.workspace import open_workspace


class Stopped(Exception):
    """Raised inside a run, at one of its stopping places, when the process is asked to end."""


class Desk:
    """Where the jobs of one project are claimed, run and closed."""

    def __init__(self, settings: Settings, stopping: threading.Event) -> None:
        self.settings = settings
        self.project = settings.project
        self.triggers = triggers(settings)
        self.stopping = stopping
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.held: dict[str, Claim] = {}
        self.unwritten: dict[str, tuple[Claim, Ended]] = {}
        self.unnoted: dict[str, str] = {}
        self.catching_up = threading.Lock()
        self.looking = False
        self.away_since: float | None = None

    @property
    def busy(self) -> bool:
        """Whether a thread of this desk is at work."""
        return bool(self.held) or self.looking

    def look(self) -> list[str]:
        """Keep claims alive, write what could not be written, return the jobs to run now."""
        if self.stopping.is_set():
            return []
        self.looking = True
        try:
            with self._store() as store:
                self._catch_up(store)
                schedules.plan(
                    store, self.project, [planned(*pair) for pair in self.triggers.items()]
                )
                due = schedules.due(store, self.project)
        except StoreError as error:
            self._store_is_away(error)
            return []
        finally:
            self.looking = False
        self._store_is_back()
        return [job for job in due if job not in self.held]

    def ring(self, job: str) -> None:
        """Run `job` if it is due and nobody else runs it."""
        if self.stopping.is_set() or job in self.held:
            return
        try:
            with self._store() as store:
                self._catch_up(store)
                lease = self.settings.engine.lease_seconds
                claim = schedules.claim(store, self.project, job, self.owner, lease)
        except StoreError as error:
            self.unnoted[job] = one_line(error)
            self._log(logging.WARNING, "not started", job, self.unnoted[job])
            return
        if claim is not None:
            self.held[job] = claim
            self._log(logging.INFO, "started", job)
            self._close(job, self._work(job))

    def broken(self, job: str, error: BaseException) -> None:
        """Close a job that ended by an exception that nobody foresaw; its message is not told.

        Such a message may hold values of the graph; the place in the code is enough to find it.
        """
        frames = extract_tb(error.__traceback__)
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        words = f"{type(error).__name__}{place}; please report it"
        if job in self.held:
            self._close(job, Ended("failed", words, self.settings.schedule.retry_seconds))
        else:
            self._log(logging.ERROR, "not started", job, words)

    def _work(self, job: str) -> Ended:
        retry = self.settings.schedule.retry_seconds
        try:
            with open_workspace(self.settings) as workspace:
                return JOBS[job](workspace, self._progress)
        except Stopped:
            return Ended("stopped", "the scheduler was asked to end; the next start goes on", 0.0)
        except (LeaseHeld, LeaseLost) as error:
            return Ended("held", one_line(error), retry)
        except (StoreError, ServerError, FolderError) as error:
            return Ended("failed", one_line(error), retry)
        except RingfenceError as error:
            return Ended("failed", one_line(error))

    def _progress(self, _what: str, _done: int, _all: int) -> None:
        if self.stopping.is_set():
            raise Stopped

    def _close(self, job: str, ended: Ended) -> None:
        claim = self.held[job]
        level = {"failed": logging.ERROR, "alarm": logging.WARNING}.get(ended.outcome, logging.INFO)
        self._log(level, ended.outcome, job, ended.words)
        try:
            with self._store() as store:
                self._finish(store, claim, ended)
        except StoreError as error:
            self.unwritten[job] = (claim, ended)
            self._log(logging.WARNING, "end not written yet", job, one_line(error))
        del self.held[job]

    def _finish(self, store: Store, claim: Claim, ended: Ended) -> None:
        next_after = self.triggers[claim.job].next_after
        if not schedules.finish(store, claim, ended, next_after):
            self._log(logging.WARNING, "taken over", claim.job, "another scheduler has this job")

    def _catch_up(self, store: Store) -> None:
        with self.catching_up:
            for job, words in list(self.unnoted.items()):
                schedules.note_failure(store, self.project, job, words)
                self.unnoted.pop(job)
            for job, (claim, ended) in list(self.unwritten.items()):
                self._finish(store, claim, ended)
                self.unwritten.pop(job)
        for claim in list(self.held.values()):
            schedules.prolong(store, claim, self.settings.engine.lease_seconds)

    @contextmanager
    def _store(self) -> Iterator[Store]:
        with open_audit(self.settings) as store:
            migrate_sql.require_sql(store)
            yield store

    def _store_is_away(self, error: StoreError) -> None:
        if self.away_since is None:
            self.away_since = time.monotonic()
            self._log(logging.ERROR, "store away", None, one_line(error))

    def _store_is_back(self) -> None:
        if self.away_since is not None:
            seconds = time.monotonic() - self.away_since
            self.away_since = None
            self._log(logging.INFO, "store back", None, f"after {seconds:.0f} s")

    def _log(self, level: int, name: str, job: str | None, words: str = "") -> None:
        fields = {"project": self.project, "job": job, "words": words}
        event(level, name, **{key: value for key, value in fields.items() if value})
