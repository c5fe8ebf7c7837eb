"""What a command prints: tables and sentences, or JSON; errors in three parts.

rich is imported by the first table or sentence, so that `--help` and `--json` do not wait for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from ringfence.connector.errors import RingfenceError
from ringfence.connector.json_types import JsonObject

if TYPE_CHECKING:
    from rich.console import Console

    from ringfence.connector.progress import Progress
    from ringfence.jobs.config.settings import Settings
    from ringfence.jobs.project.workspace import Workspace

T = TypeVar("T")


@contextmanager
def open_with_progress(config: Path | None, what: str) -> Iterator[tuple[Workspace, Progress]]:
    """Open the configured project and show progress while the `with` block works."""
    from ringfence.jobs.config.load import load

    settings = load(config)
    _check_connection(settings)  # before anything is imported that takes its time
    from ringfence.jobs.cli.progress import server_progress, show_progress
    from ringfence.jobs.project.workspace import open_workspace

    with (
        show_progress(what) as report,
        open_workspace(settings, server_progress(report)) as workspace,
    ):
        yield workspace, report


def _check_connection(settings: Settings) -> None:
    """Raise if Neo4j's URI or password can't be used, or no server answers.

    An embedded server is checked later, since it may have to be started.
    """
    from ringfence.connector.neo4j.access.address import check_uri, require_answer, require_password

    neo4j = settings.neo4j
    if neo4j.uri == "embedded":
        return
    check_uri(neo4j.uri, neo4j.tls)
    password = None if neo4j.password is None else neo4j.password.get_secret_value()
    if neo4j.auth == "password":
        require_password(neo4j.uri, neo4j.user, password)
    require_answer(neo4j.uri)


@runtime_checkable
class HasJson(Protocol):
    """A report whose `--json` keys are not its field names."""

    def as_json(self) -> JsonObject:
        """Return what `--json` prints."""


def print_report(report: T, as_json: bool, print_text: Callable[[T], None]) -> None:
    """Print a report as JSON, or as its verb shows it to a person."""
    if as_json:
        print_json(report)
    else:
        print_text(report)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table within the terminal's width; columns of numbers stand right."""
    from ringfence.jobs.cli.text_table import draw_table

    _stdout().print(draw_table(title, columns, rows, _stdout().width))


def say(text: str) -> None:
    """Print a line for a person: nothing in it is markup or moves the cursor.

    Commands in it can be pasted: they have the program as it was called, and its `--config`.
    """
    from rich.text import Text

    from ringfence.jobs.cli.next_step_text import as_typed
    from ringfence.jobs.cli.text_table import visible

    _stdout().print(Text(visible(as_typed(text), keep="\n")), soft_wrap=True)


def say_sentence(text: str) -> None:
    """Print a sentence that stands without capital and full stop, with both."""
    say(f"{text[:1].upper()}{text[1:]}.")


@contextmanager
def silence() -> Iterator[None]:
    """Suppress tables and lines, for `--json`; progress and errors still show."""
    _stdout().quiet = True
    try:
        yield
    finally:
        _stdout().quiet = False


def print_json(value: Any) -> None:
    """Print a report as JSON."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, default=_plain_value) + "\n")


def print_error(error: RingfenceError, as_json: bool) -> None:
    """Print an error on stderr: found, needed, next."""
    if as_json:
        body = {"error": error.found, "needed": error.needed, "next": error.next_step}
        sys.stderr.write(json.dumps(body) + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    line = Text("error: ", style="bold red")
    Console(stderr=True).print(line + Text(str(error), style=""), soft_wrap=True)


def print_note(text: str, as_json: bool) -> None:
    """Print a line on stderr that is no error."""
    sys.stderr.write(f"{json.dumps({'note': text}) if as_json else f'note: {text}'}\n")


@cache
def _stdout() -> Console:
    from rich.console import Console

    return Console()  # of 80 characters, or $COLUMNS, where stdout is no terminal


def _plain_value(value: Any) -> Any:
    if isinstance(value, HasJson):
        return value.as_json()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)
