"""What a person sees while waiting: bars on a terminal, a line every two seconds elsewhere.

Imported when a command starts to work, and not for `--help`: it brings rich.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as ProgressBars
from rich.text import Text

from ringfence.connector.neo4j.embedded import ServerProgress
from ringfence.connector.progress import Progress

SECONDS_BETWEEN_LINES = 2.0


@contextmanager
def show_progress(what: str) -> Iterator[Progress]:
    """Show how far a wait has come, on stderr."""
    stderr = Console(stderr=True)
    if stderr.is_terminal:
        with _bars(stderr) as report:
            report(what, 0, 0)
            yield report
    else:
        yield _lines(stderr)


def server_progress(report: Progress) -> Callable[[ServerProgress], None]:
    """Show the embedded server's download and start through `report`."""

    def show(step: ServerProgress) -> None:
        if step.stage == "download":
            report("downloading Neo4j (kB)", step.bytes_done // 1024, step.bytes_total // 1024)
        else:
            report("starting Neo4j", 0, 0)

    return show


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def _bars(stderr: Console) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBars(*columns, console=stderr, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield report


def _lines(stderr: Console) -> Progress:
    last = time.monotonic()
    began: dict[str, tuple[float, int]] = {}

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        start, first = began.setdefault(what, (now, done))
        if now - last < SECONDS_BETWEEN_LINES:
            return
        last = now
        rate = describe_rate(done, total, done - first, now - start)
        of = f" of {total:,}" if total else ""
        stderr.print(f"  {what}: {done:,}{of}{rate}", highlight=False)

    return report


def describe_rate(done: int, total: int, rows: int, seconds: float) -> str:
    """Return how fast `rows` went by, and how long the rest takes at that speed.

    What an earlier attempt brought counts as done, not as speed.

    >>> describe_rate(600_000, 1_000_000, 100_000, 2.0)
    ', 50,000/s, 8 s left'
    """
    if rows <= 0 or seconds <= 0:
        return ""
    rate = rows / seconds
    left = f", {max(total - done, 0) / rate:,.0f} s left" if total else ""
    return f", {rate:,.0f}/s{left}"
