"""The loop that calls each job at its times, and the watchdog over it.

Nothing is kept in APScheduler: its jobs are made from the configuration at every start, in memory.
It calls `run_if_due` at each job's times and `poll` every few seconds; what is due is decided by
the audit store. Its thread can die or hang while it reports itself as running, so the main thread
checks that thread and the age of the last tick, and ends the process if either is wrong.
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

from ringfence.jobs.config.scheduled_jobs import JOBS
from ringfence.jobs.schedule.logs import log_event
from ringfence.jobs.schedule.runner import JobRunner

CHECK_SECONDS = 0.2
FROZEN_SECONDS = 5.0  # a main thread that was away for so long can't judge the others


class SchedulerLoop:
    """Calls the runners' jobs until the process is asked to end, or until it can't go on."""

    def __init__(self, runners: Sequence[JobRunner], stopping: threading.Event) -> None:
        self.runners = runners
        self.stopping = stopping
        schedules = [runner.settings.schedule for runner in runners]
        self.tick_seconds = min(schedule.tick_seconds for schedule in schedules)
        self.stale_seconds = max(schedule.stale_seconds for schedule in schedules)
        self.grace_seconds = max(schedule.grace_seconds for schedule in schedules)
        self.signals = 0
        self.ticked = time.monotonic()
        self.scheduler = self._make_scheduler()
        self.thread = threading.Thread(target=self.scheduler.start, name="scheduler", daemon=True)

    def run(self) -> str:
        """Run until a signal comes; return "" then, or else why the scheduler is dead."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_signal)
        self.ticked = time.monotonic()
        self.thread.start()
        dead = self._wait_for_signal()
        if not dead:
            self._stop()
        return dead

    @property
    def busy(self) -> bool:
        """Whether a thread is still at work."""
        return any(runner.busy for runner in self.runners)

    def _make_scheduler(self) -> BlockingScheduler:
        executors = {"tick": ThreadPoolExecutor(1)}
        for number, _ in enumerate(self.runners):
            executors[f"poll {number}"] = ThreadPoolExecutor(1)
            executors[f"run {number}"] = ThreadPoolExecutor(1)
            executors[f"beside {number}"] = ThreadPoolExecutor(1)
        scheduler = BlockingScheduler(
            timezone=UTC,
            jobstores={"default": MemoryJobStore()},
            executors=executors,
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
        )
        scheduler.add_job(self._tick, _every(self.tick_seconds), executor="tick")
        for number, runner in enumerate(self.runners):
            self._add_runner(scheduler, number, runner)
        scheduler.add_listener(self._handle_exception, EVENT_JOB_ERROR)
        return scheduler

    def _add_runner(self, scheduler: BlockingScheduler, number: int, runner: JobRunner) -> None:
        settings = runner.settings
        poll_seconds = min(settings.schedule.tick_seconds, settings.engine.lease_seconds / 3)
        scheduler.add_job(
            self._poll,
            _every(poll_seconds),
            args=[number],
            id=f"poll-{number}",
            executor=f"poll {number}",
            next_run_time=datetime.now(UTC),
        )
        for job, trigger in runner.triggers.items():
            scheduler.add_job(
                runner.run_if_due,
                trigger.timer,
                args=[job],
                id=f"{number} {job}",
                executor=f"{'beside' if JOBS[job].beside else 'run'} {number}",
            )

    def _tick(self) -> None:
        self.ticked = time.monotonic()

    def _poll(self, number: int) -> None:
        for job in self.runners[number].poll():
            self.scheduler.modify_job(f"{number} {job}", next_run_time=datetime.now(UTC))

    def _handle_exception(self, failed: JobExecutionEvent) -> None:
        number, _, job = failed.job_id.partition(" ")
        if job:
            self.runners[int(number)].close_failed(job, failed.exception)
        else:
            exception = type(failed.exception).__name__
            log_event(logging.ERROR, "poll failed", job=failed.job_id, words=exception)

    def _note_signal(self, _number: int, _frame: object) -> None:
        self.signals += 1  # no lock may be taken here: the main thread might hold it

    def _wait_for_signal(self) -> str:
        """Wait; return why the scheduler is dead where the watchdog finds it so."""
        checked = time.monotonic()
        while not self.signals:
            time.sleep(CHECK_SECONDS)
            now = time.monotonic()
            if now - checked > FROZEN_SECONDS:
                self.ticked = now
            checked = now
            if not self.thread.is_alive():
                return "the scheduler's thread is dead"
            if now - self.ticked > self.stale_seconds:
                return f"the scheduler has not ticked for {now - self.ticked:.0f} s"
        return ""

    def _stop(self) -> None:
        """Wait until runs reach a stopping place; a second signal cuts the grace period short."""
        self.stopping.set()
        log_event(logging.INFO, "stopping", words=f"within {self.grace_seconds:g} s")
        self.scheduler.shutdown(wait=False)
        deadline = time.monotonic() + self.grace_seconds
        while self.busy and self.signals < 2 and time.monotonic() < deadline:
            time.sleep(CHECK_SECONDS)
        for runner in self.runners:
            for job in list(runner.held):
                text = "left in the middle; the next start finishes it"
                log_event(logging.WARNING, "cut", project=runner.project, job=job, words=text)


def _every(seconds: float) -> IntervalTrigger:
    return IntervalTrigger(seconds=seconds, timezone=UTC)
