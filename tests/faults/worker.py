"""A real process that scores or audits, and dies, freezes or waits at a named place of the run.

The fork server imports this module once (torch and all); every attempt is a fork of it, without
a connection or a thread from before, and costs well under a second.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numba
import torch
from sqlalchemy import create_engine, update

from ringfence.connector import fault_points
from ringfence.connector.errors import RingfenceError
from ringfence.connector.neo4j.read import append
from ringfence.connector.store import migrate, predictions, tables
from ringfence.connector.store.lifecycle.activations import activations_of, version_before
from ringfence.connector.store.models import class_names
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load
from ringfence.jobs.lifecycle import promotion
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.schedule.runner import JobRunner
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from ringfence.models.networks import build
from tests.faults import breaks

PATIENCE = 240.0
NODES_PER_BLOCK = 5  # of a run that goes to SQL: several blocks, to die between two
MAX_NODES_READ_AGAIN = 12  # a case has more shops and fewer towns: both ways to read context


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker does: `action` for the project of `config`, `deed` at the nth `place`."""

    config: Path
    environment: dict[str, str]
    action: str
    deed: str = ""
    place: str = ""
    nth: int = 1
    without: str = ""
    clock: float = 0.0


@dataclass(slots=True)
class Outcome:
    """How an attempt ended: done, refused (an error of ours), crashed (any other) or killed."""

    kind: str
    text: str = ""
    reached: bool = False


@numba.njit
def _one_more(number: int) -> int:
    return number + 1


def warm() -> None:
    """Pay once, before any fork, for what numba, torch and SQLAlchemy load at first use."""
    torch.set_num_threads(1)
    _one_more(1)
    build("GCN", 4, 3, hidden=8)(torch.zeros(2, 4), torch.tensor([[0], [1]]))
    for url in ("sqlite://", "postgresql+psycopg://localhost"):
        create_engine(url).dispose()
    migrate._head()


def line(workspace: Workspace) -> None:
    """Score, then audit."""
    run_scoring(workspace)
    run_audit(workspace)


def schedule_once(workspace: Workspace) -> None:
    """Score and audit as a scheduler does, with the configuration that it was started with."""
    runner = JobRunner(workspace.settings, threading.Event())
    runner.poll()
    with workspace.store.transaction() as connection:
        at = tables.schedule.c
        due = update(tables.schedule).where(at.project == workspace.project).values(due_ns=0)
        connection.execute(due.where(at.job.in_(("score", "audit"))))
    for job in ("score", "audit"):
        runner.run_if_due(job)


def promote(workspace: Workspace) -> None:
    """Take the newest version that is not in use into use."""
    active = activations_of(workspace.store, workspace.project)[-1].version
    others = [name for name in class_names(workspace.store, workspace.project) if name != active]
    promotion.run_promotion(workspace, others[-1], "by the harness")


def rollback(workspace: Workspace) -> None:
    """Take the newest promotion back; where there is none, promote."""
    if version_before(activations_of(workspace.store, workspace.project)) is None:
        promote(workspace)
    else:
        promotion.run_rollback(workspace, "by the harness")


ACTIONS: dict[str, Callable[[Workspace], Any]] = {
    "train": run_training,
    "score": run_scoring,
    "audit": run_audit,
    "line": line,
    "schedule": schedule_once,
    "promote": promote,
    "rollback": rollback,
}


def work(task: Task, pipe: Connection) -> None:
    """Do the task in this process and send how it ended."""
    torch.set_num_threads(1)
    _arm(task, pipe)
    predictions.NODES_PER_BLOCK = NODES_PER_BLOCK
    append.MAX_NODES_READ_AGAIN = MAX_NODES_READ_AGAIN
    try:
        with open_workspace(load(task.config, task.environment)) as workspace:
            breaks.BREAKS[task.without]()
            ACTIONS[task.action](workspace)
        pipe.send(("done", ""))
    except RingfenceError as error:
        pipe.send(("refused", f"{type(error).__name__}: {error.found}"))
    except Exception as error:  # noqa: BLE001 - the harness reports whatever it was
        pipe.send(("crashed", f"{type(error).__name__}: {error}"))


def _arm(task: Task, pipe: Connection) -> None:
    if task.clock:
        really, really_ns = time.time, time.time_ns
        time.time = lambda: really() + task.clock
        time.time_ns = lambda: really_ns() + int(task.clock * 1e9)
    passed: Counter[str] = Counter()
    known = fault_points.reach

    def at(name: str) -> None:
        known(name)
        passed[name] += 1
        if name == task.place and passed[name] == task.nth:
            pipe.send(("reached", name))
            _do(task.deed, pipe)

    fault_points.reach = at


def _do(deed: str, pipe: Connection) -> None:
    if deed == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif deed == "freeze":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif deed == "wait":
        pipe.recv()


@dataclass(slots=True)
class Attempt:
    """A worker process as the harness sees it."""

    process: Any
    pipe: Connection
    seen: Outcome = field(default_factory=lambda: Outcome("killed"))

    def reached(self, seconds: float = PATIENCE) -> bool:
        """Wait until the worker is at its place; False where it ended before."""
        return self._receive(seconds, "reached")

    def go_on(self) -> None:
        """Let a waiting worker go on."""
        self.pipe.send("go")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal unless the worker has ended."""
        if self.process.is_alive():
            os.kill(self.process.pid, number)

    def ended(self, seconds: float) -> bool:
        """Wait for the end for at most `seconds`."""
        self._receive(seconds, "")
        self.process.join(0.5 if self.seen.kind == "killed" else seconds)
        return not self.process.is_alive()

    def outcome(self) -> Outcome:
        """Wait for the end and return how it came."""
        if not self.ended(PATIENCE):
            self.process.kill()
            self.seen = Outcome("crashed", f"no end after {PATIENCE:.0f} s", self.seen.reached)
        self.process.join()
        return self.seen

    def _receive(self, seconds: float, wanted: str) -> bool:
        deadline = time.monotonic() + seconds
        while self.pipe.poll(max(0.0, deadline - time.monotonic())):
            try:
                kind, text = self.pipe.recv()
            except (EOFError, ConnectionResetError):
                return False
            if kind == "reached":
                self.seen.reached = True
            else:
                self.seen = Outcome(kind, text, self.seen.reached)
            if kind == wanted:
                return True
            if kind != "reached":
                return False
        return False


_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.faults.warm"])


def start(task: Task) -> Attempt:
    """Fork a worker that does `task`."""
    ours, theirs = _context.Pipe()
    process = _context.Process(target=work, args=(task, theirs), daemon=True)
    process.start()
    theirs.close()
    return Attempt(process, ours)
