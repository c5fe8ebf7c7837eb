"""The configuration file of a running scheduler: a change is logged; a restart applies it.

A scheduler works with the configuration that it started with. Half a change must never take effect:
a file may be saved in the middle of an edit, and some settings (label, features) need a new model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ringfence.connector.errors import RingfenceError, describe_error
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings

GOES_ON = "this process goes on with what it started with; restart it to take the new one"


class ConfigFile:
    """Compares a file with the settings that a process started with, whenever it is saved."""

    def __init__(
        self, path: Path, settings: Settings, environment: Mapping[str, str] | None = None
    ) -> None:
        self.path = path
        self.settings = settings
        self.environment = environment
        self.seen = self._stamp()

    def news(self) -> str:
        """Return what changed since the last call as a sentence; empty if it was not saved."""
        stamp = self._stamp()
        if stamp == self.seen:
            return ""
        self.seen = stamp
        try:
            now = load(self.path, self.environment)
        except RingfenceError as error:
            return f"{describe_error(error)}; {GOES_ON}"
        changed = sorted(_changed(self.settings.model_dump(), now.model_dump()))
        if not changed:
            return "the settings are those that this process started with"
        return f"{', '.join(changed)} changed; {GOES_ON}"

    def _stamp(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size


def _changed(before: dict[str, Any], now: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the names of the settings that differ; their values may be secrets."""
    names = []
    for name in {*before, *now}:
        was, is_ = before.get(name), now.get(name)
        if isinstance(was, dict) and isinstance(is_, dict):
            names += _changed(was, is_, f"[{name}] ")
        elif was != is_:
            names.append(f"{prefix}{name}")
    return names
