"""Options that several verbs share, and how a printed next step repeats them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringfence.jobs.cli.next_step_text import complete_commands, program_name

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="The file to read instead of ringfence.toml.")
]
Configs = Annotated[
    list[Path] | None,
    typer.Option("--config", "-c", help="The file of a project; repeat it for several projects."),
]
EnvironmentFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--env-file",
        help="A file of variables (NAME=value) for a project alone, such as its secrets; one per "
        "--config, in the same order.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def with_config(command: str, config: Path | None) -> str:
    """Return `command` as it can be pasted: the program as it was called, with its `--config`.

    >>> with_config("ringfence doctor", None), with_config("ringfence doctor", Path("my own.toml"))
    ('ringfence doctor', "ringfence doctor --config 'my own.toml'")
    """
    return complete_commands(command, config, program_name(), [command.split()[1]])
