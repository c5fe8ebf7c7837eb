"""Commands in messages, as they can be pasted: the program as it was called, with its `--config`.

found: no table `run`; next: ringfence migrate
found: no table `run`; next: .venv/bin/ringfence migrate --config other/ringfence.toml
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

NAME = "ringfence"
PACKAGE = Path(__file__).resolve().parents[2]
WITHOUT_CONFIG = ("demo", "init", "reproduce")  # verbs that make a configuration or need none
#: "-m ringfence score" and "bin/ringfence score" have their program already.
COMMAND = re.compile(rf"(?<![\w/.\-])(?<!-m ){NAME} (neo4j (?:start|stop|status)|[a-z]+)(?![\w\-])")


def complete_commands(text: str, config: Path | None, program: str, verbs: Sequence[str]) -> str:
    """Return `text` with each command of ours as this shell can run it.

    >>> complete_commands("then: ringfence doctor", Path("my own.toml"), "ringfence", ["doctor"])
    "then: ringfence doctor --config 'my own.toml'"
    >>> complete_commands("ringfence keeps both values", None, ".venv/bin/ringfence", ["doctor"])
    'ringfence keeps both values'
    >>> complete_commands("python -m ringfence doctor", None, "python -m ringfence", ["doctor"])
    'python -m ringfence doctor'
    """
    if "--config" in text:
        config = None

    def completed(match: re.Match[str]) -> str:
        verb = match[1].split()[0]
        if verb not in verbs:
            return match[0]
        option = "" if config is None or verb in WITHOUT_CONFIG else _option(config)
        return f"{program} {match[1]}{option}"

    return COMMAND.sub(completed, text)


def as_typed(text: str) -> str:
    """Return `text` with its commands as the shell that called this process can run them."""
    from ringfence.jobs.cli.app import VERBS

    return complete_commands(text, config_argument(sys.argv[1:]), program_name(), list(VERBS))


def program_name() -> str:
    """Return how to call this program again from the shell that called it.

    `ringfence` where that finds it; the path to it otherwise, as after `make demo`.
    """
    called = Path(sys.argv[0])
    if called == PACKAGE / "__main__.py":
        return f"{shlex.quote(sys.executable)} -m {NAME}"
    installed = shutil.which(NAME)
    if called.name != NAME or not called.exists():
        return NAME
    if installed and Path(installed).samefile(called):
        return NAME
    inside = called.is_absolute() and called.is_relative_to(Path.cwd())
    return shlex.quote(str(called.relative_to(Path.cwd()) if inside else called))


def config_argument(arguments: Sequence[str]) -> Path | None:
    """Return the `--config` among a command's words; None where there is none.

    >>> config_argument(["score", "--json", "-c", "a.toml"]), config_argument(["score"])
    (PosixPath('a.toml'), None)
    """
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name == "--config" and equals:
            return Path(value)
        if word in {"--config", "-c"} and place + 1 < len(arguments):
            return Path(arguments[place + 1])
    return None


def _option(config: Path) -> str:
    return f" --config {shlex.quote(str(config))}"
