"""One project in the scheduler: queries what is due, runs it, records how it ended.

`poll` and `run_if_due` are called from threads of their own; neither raises where a store or a
server is unavailable. What can't be written then is kept and written by the first poll that finds
the store again.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

from ringfence.connector.errors import (
    FolderError,
    LeaseHeld,
    LeaseLost,
    RingfenceError,
    ServerError,
    StoreError,
    describe_error,
)
from ringfence.connector.progress import Progress
from ringfence.connector.store import migrate, schedule
from ringfence.connector.store.audit_chain.actor import acting_as
from ringfence.connector.store.engine import Store
from ringfence.connector.store.schedule import Claim, Ended
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.schedule import job_functions
from ringfence.jobs.schedule.config_file import ConfigFile
from ringfence.jobs.schedule.logs import log_event
from ringfence.jobs.schedule.plan import parse_triggers, planned_jobs
from ringfence.jobs.telemetry.run_id import run_scope


class Stopped(Exception):
    """Raised inside a run, at one of its stopping places, when the process is asked to end."""


class JobRunner:
    """Claims, runs and closes the jobs of one project."""

    def __init__(
        self, settings: Settings, stopping: threading.Event, file: ConfigFile | None = None
    ) -> None:
        self.settings = settings
        self.file = file
        self.project = settings.project
        self.triggers = parse_triggers(settings)
        self.stopping = stopping
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.held: dict[str, Claim] = {}
        self.unwritten: dict[str, tuple[Claim, Ended]] = {}
        self.unnoted: dict[str, str] = {}
        self.catching_up = threading.Lock()
        self.polling = False
        self.away_since: float | None = None

    @property
    def busy(self) -> bool:
        """Whether a thread of this runner is at work."""
        return bool(self.held) or self.polling

    def poll(self) -> list[str]:
        """Keep claims alive, write what could not be written, return the jobs to run now."""
        if self.stopping.is_set():
            return []
        if self.file is not None and (news := self.file.news()):
            self._log(logging.WARNING, "configuration", None, news)
        self.polling = True
        try:
            with self._store() as store:
                self._catch_up(store)
                schedule.plan(store, self.project, planned_jobs(self.triggers))
                due = schedule.due(store, self.project)
        except StoreError as error:
            self._store_is_away(error)
            return []
        finally:
            self.polling = False
        self._store_is_back()
        return [job for job in due if job not in self.held]

    def run_if_due(self, job: str) -> None:
        """Run `job` if it is due and not running elsewhere."""
        if self.stopping.is_set() or job in self.held:
            return
        try:
            with self._store() as store:
                self._catch_up(store)
                lease = self.settings.engine.lease_seconds
                claim = schedule.claim(store, self.project, job, self.owner, lease)
        except StoreError as error:
            self.unnoted[job] = describe_error(error)
            self._log(logging.WARNING, "not started", job, self.unnoted[job])
            return
        if claim is not None:
            self.held[job] = claim
            with run_scope():  # its lines and its trace have one id
                self._log(logging.INFO, "started", job)
                self._close(job, self._run(job))

    def close_failed(self, job: str, error: BaseException) -> None:
        """Close a job that ended by an exception that is no `RingfenceError`.

        Its message may hold values of the graph and is left out; the place in the code is named.
        """
        frames = extract_tb(error.__traceback__)
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        text = f"{type(error).__name__}{place}; please report it"
        if job in self.held:
            self._close(job, Ended("failed", text, self.settings.schedule.retry_seconds))
        else:
            self._log(logging.ERROR, "not started", job, text)

    def _run(self, job: str) -> Ended:
        retry = self.settings.schedule.retry_seconds
        run_job: Callable[[Workspace, Progress], Ended] = getattr(job_functions, job)
        try:
            with open_workspace(self.settings) as workspace, acting_as(f"schedule {job}"):
                return run_job(workspace, self._stop_if_asked)
        except Stopped:
            return Ended("stopped", "the scheduler was asked to end; the next start goes on", 0.0)
        except (LeaseHeld, LeaseLost) as error:
            return Ended("held", describe_error(error), retry)
        except (StoreError, ServerError, FolderError) as error:
            return Ended("failed", describe_error(error), retry)
        except RingfenceError as error:
            return Ended("failed", describe_error(error))

    def _stop_if_asked(self, _what: str, _done: int, _all: int) -> None:
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
            self._log(logging.WARNING, "end not written yet", job, describe_error(error))
        del self.held[job]

    def _finish(self, store: Store, claim: Claim, ended: Ended) -> None:
        next_after = self.triggers[claim.job].next_after
        if not schedule.finish(store, claim, ended, next_after):
            self._log(logging.WARNING, "taken over", claim.job, "another scheduler has this job")

    def _catch_up(self, store: Store) -> None:
        with self.catching_up:
            for job, failure in list(self.unnoted.items()):
                schedule.note_failure(store, self.project, job, failure)
                self.unnoted.pop(job)
            for job, (claim, ended) in list(self.unwritten.items()):
                self._finish(store, claim, ended)
                self.unwritten.pop(job)
        for claim in list(self.held.values()):
            schedule.prolong(store, claim, self.settings.engine.lease_seconds)

    @contextmanager
    def _store(self) -> Iterator[Store]:
        with open_audit(self.settings) as store:
            migrate.require_sql(store)
            yield store

    def _store_is_away(self, error: StoreError) -> None:
        if self.away_since is None:
            self.away_since = time.monotonic()
            self._log(logging.ERROR, "store away", None, describe_error(error))

    def _store_is_back(self) -> None:
        if self.away_since is not None:
            seconds = time.monotonic() - self.away_since
            self.away_since = None
            self._log(logging.INFO, "store back", None, f"after {seconds:.0f} s")

    def _log(self, level: int, name: str, job: str | None, text: str = "") -> None:
        fields = {"project": self.project, "job": job, "words": text}
        log_event(level, name, **{key: value for key, value in fields.items() if value})
