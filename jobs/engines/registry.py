"""Engines by the name that the configuration gives; each is imported on first use.

An engine lives until the project is closed: the second pass of a run finds its workers running.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, cast

from ringfence.jobs.config.engine import ENGINES
from ringfence.jobs.project.shared_resources import close_with_last_workspace

if TYPE_CHECKING:
    from ringfence.jobs.config.engine import EngineSettings
    from ringfence.jobs.engines.base import Engine

_open: dict[str, tuple[EngineSettings, Engine]] = {}
_lock = threading.RLock()


def engine_of(settings: EngineSettings) -> Engine:
    """Return the engine of a configuration; the same one until it is closed."""
    with _lock:
        if settings.kind in _open:
            known, engine = _open[settings.kind]
            if known == settings:
                return engine
            _open.pop(settings.kind)[1].close()
        module, _, name = ENGINES[settings.kind].partition(":")
        engine = cast("Engine", getattr(import_module(module), name)(settings))
        _open[settings.kind] = (settings, engine)
        return engine


def close_engines() -> None:
    """Stop everything that engines started; the next use opens one again."""
    with _lock:
        while _open:
            _, (_, engine) = _open.popitem()
            engine.close()


close_with_last_workspace(close_engines)
