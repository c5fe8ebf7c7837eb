"""Options that several verbs share, and how a printed next step repeats them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="The file to read instead of ringfence.toml.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def with_config(command: str, config: Path | None) -> str:
    """Return `command` with the `--config` that this command was given, ready to be pasted.

    >>> with_config("ringfence doctor", None), with_config("ringfence doctor", Path("my own.toml"))
    ('ringfence doctor', "ringfence doctor --config 'my own.toml'")
    """
    return command if config is None else f"{command} --config {shlex.quote(str(config))}"
