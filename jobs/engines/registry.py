"""Engines by the name that the configuration gives; each is imported when it is asked for.

An engine lives until the project is closed: the second pass of a run finds its workers running.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ringfence.jobs.config.engine import EngineSettings
    from ringfence.jobs.engines.base import Engine

ENGINES = {
    "local": "ringfence.jobs.engines.local:LocalEngine",
    "ray": "ringfence.jobs.engines.ray_engine:RayEngine",
}

_open: dict[str, tuple[EngineSettings, Engine]] = {}
_lock = threading.RLock()
_holders = 0


@contextmanager
def hold_engines() -> Iterator[None]:
    """Let engines live as long as somebody holds them; the last one to go ends them."""
    global _holders
    with _lock:
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                close_engines()


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
    """End all that engines started; the next question opens one again."""
    with _lock:
        while _open:
            _, (_, engine) = _open.popitem()
            engine.close()
