"""The commands in a sentence that a shell takes as they stand.

A fix says more than a command: "correct [graph] label, or: ringfence init". What is shown to be
pasted is the command alone, and only if its verb has these options and no value is left to fill in.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import typer

USAGE_ERRORS = (*typer.BadParameter.__bases__, typer.Exit)
"""UsageError of click, or of the click inside typer, and the end of a verb that only helps."""

PLACEHOLDER = re.compile("…|\\b[A-Z]{3,}\\b")
COMMAND = re.compile(r"(?<![\w/.\-])(?:ringfence [a-z]|pip install )[^\n]*?(?=$|\n|[;,]| {2,}| \()")


def commands_in(text: str) -> Iterator[str]:
    """Yield the commands in a sentence that can be pasted.

    >>> list(commands_in("correct [graph] label, or: ringfence init"))
    ['ringfence init']
    >>> list(commands_in("ringfence reconcile --repair   (writes them again)"))
    ['ringfence reconcile --repair']
    >>> list(commands_in('ringfence promote VERSION --reason "…", to take it into use'))
    []
    >>> list(commands_in("ringfence migrate does it; pip install 'ringfence[train]', to train"))
    ["pip install 'ringfence[train]'"]
    """
    for match in COMMAND.finditer(text):
        command = match[0].strip().rstrip(".:")
        if not PLACEHOLDER.search(command) and _is_complete(command):
            yield command


def _is_complete(command: str) -> bool:
    """Whether the quotes are closed, and the verb takes what is given to it."""
    try:
        program, *words = shlex.split(command)
    except ValueError:
        return False
    return program == "pip" or _verb_takes(words)


def _verb_takes(words: list[str]) -> bool:
    from ringfence.jobs.cli.app import app

    command = typer.main.get_command(app)
    try:
        verb = getattr(command, "commands", {}).get(words[0])
        if verb is None:
            return False
        verb.make_context(words[0], list(words[1:]))
    except Exception as error:
        if not isinstance(error, USAGE_ERRORS):
            raise
        return False
    return True
