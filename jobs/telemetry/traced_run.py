"""A verb as a traced run: an id, a log line per step, and a trace if configured.

    @traced("score")
    def run_scoring(workspace, ...):
        stopwatch.lap("read")      # a step of the run, wherever it is called

Nothing here can fail a run, and OpenTelemetry is imported only where `[telemetry] traces` is on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from ringfence.jobs.telemetry.log_lines import configure_logging, is_configured, log_run_event
from ringfence.jobs.telemetry.run_id import run_scope

if TYPE_CHECKING:
    from ringfence.jobs.config.settings import Settings
    from ringfence.jobs.config.telemetry import TelemetrySettings


class OpenProject(Protocol):
    """What a run needs of a workspace: its settings."""

    @property
    def settings(self) -> Settings:
        """All that the project's configuration says."""
        ...


P = ParamSpec("P")
T = TypeVar("T")
W = TypeVar("W", bound=OpenProject)

NANOSECONDS = 10**9
LINEAGE_VERBS = ("score", "audit")
COVERAGE_FACTS = ("seq", "slice", "name", "alpha", "evaluated", "known", "covered", "verdict")
COVERAGE_SLICES = ("total", "class")  # groups are values of a property
FACTS = ("seq", "evaluated", "new_nodes", "newly_known", "version", "entries")
"""Fields of reports that a line and a span may hold: counts and names of our own, no values."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a run, in nanoseconds since 1970."""

    name: str
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.start_ns) / NANOSECONDS


@dataclass(slots=True)
class TracedRun:
    """A run under way: its steps so far, and how it ended."""

    run_id: str
    verb: str
    project: str
    start_ns: int
    steps: list[Step] = field(default_factory=list)
    end_ns: int = 0
    error: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    coverage: list[dict[str, Any]] = field(default_factory=list)

    def note_step(self, name: str) -> Step:
        """Close the step that began where the last one ended."""
        begun = self.steps[-1].end_ns if self.steps else self.start_ns
        step = Step(name, begun, max(begun, time.time_ns()))
        self.steps.append(step)
        return step


_current: ContextVar[TracedRun | None] = ContextVar("ringfence_traced_run", default=None)


def note_step(name: str) -> None:
    """Note that the step `name` of the current run is done; outside of a run do nothing."""
    run = _current.get()
    if run is not None:
        step = run.note_step(name)
        log_run_event(
            logging.INFO, "step", **_names(run), step=name, seconds=round(step.seconds, 4)
        )


def traced(
    verb: str,
) -> Callable[[Callable[Concatenate[W, P], T]], Callable[Concatenate[W, P], T]]:
    """Decorate a function on a workspace as a traced run of `verb`."""

    def decorate(work: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
        @wraps(work)
        def told(workspace: W, /, *given: P.args, **named: P.kwargs) -> T:
            telemetry = workspace.settings.telemetry
            if _current.get() is not None or not _is_told(verb, telemetry):
                return work(workspace, *given, **named)  # part of another run, or off
            return _tell(verb, workspace, lambda: work(workspace, *given, **named))

        return told

    return decorate


def _is_told(verb: str, telemetry: TelemetrySettings) -> bool:
    told = telemetry.log != "off" or telemetry.traces
    return told or bool(telemetry.lineage and verb in LINEAGE_VERBS)


def _tell(verb: str, workspace: OpenProject, work: Callable[[], T]) -> T:
    settings = workspace.settings
    if settings.telemetry.log != "off" and not is_configured():
        configure_logging(settings.telemetry.log == "json")
    with run_scope() as run_id:
        run = TracedRun(run_id, verb, settings.project, time.time_ns())
        token = _current.set(run)
        log_run_event(logging.INFO, "run started", **_names(run))
        try:
            report = work()
            run.facts = _facts(report)
            run.coverage = _coverage(report)
            return report
        except BaseException as error:
            run.error = type(error).__name__  # its message may hold values
            raise
        finally:
            _current.reset(token)
            run.end_ns = time.time_ns()
            _end(run, workspace)


def _end(run: TracedRun, workspace: OpenProject) -> None:
    telemetry = workspace.settings.telemetry
    seconds = round((run.end_ns - run.start_ns) / NANOSECONDS, 4)
    level = logging.ERROR if run.error else logging.INFO
    outcome = {"error": run.error} if run.error else run.facts
    log_run_event(level, "run ended", **_names(run), seconds=seconds, **outcome)
    if telemetry.traces:
        from ringfence.jobs.telemetry.otlp import send_trace

        if reason := send_trace(run, workspace.settings):
            log_run_event(logging.WARNING, "trace not delivered", **_names(run), words=reason)
    if telemetry.lineage and run.verb in LINEAGE_VERBS:
        from ringfence.jobs.telemetry.openlineage_events import send_lineage

        if reason := send_lineage(run, workspace.settings):
            log_run_event(logging.WARNING, "lineage not delivered", **_names(run), words=reason)


def _names(run: TracedRun) -> dict[str, str]:
    return {"project": run.project, "verb": run.verb}


def _coverage(report: object) -> list[dict[str, Any]]:
    """The newest coverage rows of an audit's report, over all runs and by class."""
    rows = [row for row in getattr(report, "rows", ()) if row.slice in COVERAGE_SLICES]
    newest = max((row.seq for row in rows), default=0)
    return [
        {name: getattr(row, name) for name in COVERAGE_FACTS} for row in rows if row.seq == newest
    ]


def _facts(report: object) -> dict[str, Any]:
    """The plain facts of a report; a run's number is called `run`.

    >>> from types import SimpleNamespace
    >>> _facts(SimpleNamespace(seq=7, evaluated=3, words="not told"))
    {'run': 7, 'evaluated': 3}
    """
    facts = {name: getattr(report, name, None) for name in FACTS}
    return {
        "run" if name == "seq" else name: value
        for name, value in facts.items()
        if isinstance(value, int | str)
    }
