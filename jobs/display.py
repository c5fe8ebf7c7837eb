"""What a person sees: progress while waiting, tables afterwards, errors in three parts."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ringfence.connector.embedded import Progress as ServerProgress
from ringfence.connector.errors import RingfenceError

Report = Callable[[str, int, int], None]
QUIET_SECONDS = 2.0
PIPE_WIDTH = 110
out = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
err = Console(stderr=True)


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """Show how far a wait has come: a bar on a terminal, a line every two seconds elsewhere."""
    if err.is_terminal:
        with _bars() as report:
            report(what, 0, 0)
            yield report
    else:
        yield _lines()


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def _bars() -> Iterator[Report]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield report


def _lines() -> Report:
    last = time.monotonic()
    began: dict[str, tuple[float, int]] = {}

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        start, first = began.setdefault(what, (now, done))
        if now - last < QUIET_SECONDS:
            return
        last = now
        rate = rate_words(done, total, done - first, now - start)
        of = f" of {total:,}" if total else ""
        err.print(f"  {what}: {done:,}{of}{rate}", highlight=False)

    return report


def rate_words(done: int, total: int, rows: int, seconds: float) -> str:
    """Return how fast `rows` went by, and how long the rest takes at that speed.

    What an earlier attempt brought counts as done, not as speed.

    >>> rate_words(600_000, 1_000_000, 100_000, 2.0)
    ', 50,000/s, 8 s left'
    """
    if rows <= 0 or seconds <= 0:
        return ""
    rate = rows / seconds
    left = f", {max(total - done, 0) / rate:,.0f} s left" if total else ""
    return f", {rate:,.0f}/s{left}"


def server_progress(report: Report) -> Callable[[ServerProgress], None]:
    """Show the embedded server's download and start through `report`."""

    def show(step: ServerProgress) -> None:
        if step.stage == "download":
            report("downloading Neo4j (kB)", step.bytes_done // 1024, step.bytes_total // 1024)
        else:
            report("starting Neo4j", 0, 0)

    return show


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; columns whose cells are all numbers stand right."""
    drawn = Table(title=Text(title), title_justify="left", title_style="bold")
    for position, name in enumerate(columns):
        cells = [row[position] for row in rows]
        numeric = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        drawn.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        drawn.add_row(*(Text(_cell(cell)) for cell in row))
    out.print(drawn)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@contextmanager
def silence() -> Iterator[None]:
    """Keep tables and lines back, for `--json`; progress and errors still show."""
    out.quiet = True
    try:
        yield
    finally:
        out.quiet = False


def say(text: str) -> None:
    """Print a line for a person, as it is: nothing in it is markup."""
    out.print(Text(text), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a report as JSON."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, default=_plain_value) + "\n")


def _plain_value(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def print_error(error: RingfenceError, as_json: bool) -> None:
    """Print an error on stderr: found, needed, next."""
    if as_json:
        body = {"error": error.found, "needed": error.needed, "next": error.next_step}
        sys.stderr.write(json.dumps(body) + "\n")
        return
    line = Text("error: ", style="bold red")
    err.print(line + Text(str(error), style=""))
