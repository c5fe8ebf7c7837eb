"""APScheduler as the bell, and the watchdog over it.

Nothing is kept in APScheduler: its jobs are made from the configuration at every start, in memory.
It calls `ring` at each job's times and `look` every few seconds; what is due is decided by the
audit store. Its thread can die or hang while it calls itself running, so the main thread watches
that thread and the age of the last tick, and ends the process where either is wrong.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from apscheduler.events import EVENT_JOB_ERROR, JobExecutionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.interval import IntervalTrigger

from ringfence.jobs.schedule.desk import Desk
from ringfence.jobs.schedule.logs import event

CHECK_SECONDS = 0.2
FROZEN_SECONDS = 5.0  # a main thread that was away for so long can't judge the others


class Bell:
    """Rings the desks' jobs until the process is asked to end, or until it can't go on."""

    def __init__(self, desks: Sequence[Desk], stopping: threading.Event) -> None:
        self.desks = desks
        self.stopping = stopping
        self.tick_seconds = min(desk.settings.schedule.tick_seconds for desk in desks)
        self.stale_seconds = max(desk.settings.schedule.stale_seconds for desk in desks)
        self.grace_seconds = max(desk.settings.schedule.grace_seconds for desk in desks)
        self.signals = 0
        self.ticked = time.monotonic()
        self.scheduler = self._scheduler()
        self.thread = threading.Thread(target=self.scheduler.start, name="bell", daemon=True)

    def run(self) -> str:
        """Ring until a signal comes; return "" then, or else why the bell is dead."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_signal)
        self.ticked = time.monotonic()
        self.thread.start()
        dead = self._watch()
        if not dead:
            self._stop()
        return dead

    @property
    def busy(self) -> bool:
        """Whether a thread is still at work."""
        return any(desk.busy for desk in self.desks)

    def _scheduler(self) -> BlockingScheduler:
        executors = {"tick": ThreadPoolExecutor(1)}
        for number, _ in enumerate(self.desks):
            executors[f"look {number}"] = ThreadPoolExecutor(1)
            executors[f"work {number}"] = ThreadPoolExecutor(1)
        scheduler = BlockingScheduler(
            timezone=UTC,
            jobstores={"default": MemoryJobStore()},
            executors=executors,
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
        )
        scheduler.add_job(self._tick, _every(self.tick_seconds), executor="tick")
        for number, desk in enumerate(self.desks):
            self._add(scheduler, number, desk)
        scheduler.add_listener(self._broken, EVENT_JOB_ERROR)
        return scheduler

    def _add(self, scheduler: BlockingScheduler, number: int, desk: Desk) -> None:
        pulse = min(desk.settings.schedule.tick_seconds, desk.settings.engine.lease_seconds / 3)
        scheduler.add_job(
            self._look,
            _every(pulse),
            args=[number],
            id=f"look-{number}",
            executor=f"look {number}",
            next_run_time=datetime.now(UTC),
        )
        for job, trigger in desk.triggers.items():
            scheduler.add_job(
                desk.ring,
                trigger.bell,
                args=[job],
                id=f"{number} {job}",
                executor=f"work {number}",
            )

    def _tick(self) -> None:
        self.ticked = time.monotonic()

    def _look(self, number: int) -> None:
        for job in self.desks[number].look():
            self.scheduler.modify_job(f"{number} {job}", next_run_time=datetime.now(UTC))

    def _broken(self, failed: JobExecutionEvent) -> None:
        number, _, job = failed.job_id.partition(" ")
        if job:
            self.desks[int(number)].broken(job, failed.exception)
        else:
            words = type(failed.exception).__name__
            event(logging.ERROR, "look failed", job=failed.job_id, words=words)

    def _note_signal(self, _number: int, _frame: object) -> None:
        self.signals += 1  # no lock may be taken here: the main thread might hold it

    def _watch(self) -> str:
        seen = time.monotonic()
        while not self.signals:
            time.sleep(CHECK_SECONDS)
            now = time.monotonic()
            if now - seen > FROZEN_SECONDS:
                self.ticked = now
            seen = now
            if not self.thread.is_alive():
                return "the scheduler's thread is dead"
            if now - self.ticked > self.stale_seconds:
                return f"the scheduler has not ticked for {now - self.ticked:.0f} s"
        return ""

    def _stop(self) -> None:
        """Let runs reach a stopping place; a second signal cuts the grace short."""
        self.stopping.set()
        event(logging.INFO, "stopping", words=f"within {self.grace_seconds:g} s")
        self.scheduler.shutdown(wait=False)
        deadline = time.monotonic() + self.grace_seconds
        while self.busy and self.signals < 2 and time.monotonic() < deadline:
            time.sleep(CHECK_SECONDS)
        for desk in self.desks:
            for job in list(desk.held):
                words = "left in the middle; the next start finishes it"
                event(logging.WARNING, "cut", project=desk.project, job=job, words=words)


def _every(seconds: float) -> IntervalTrigger:
    return IntervalTrigger(seconds=seconds, timezone=UTC)
