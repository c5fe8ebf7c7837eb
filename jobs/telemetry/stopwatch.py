"""Where the seconds of a run go."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ringfence.jobs.telemetry.traced_run import note_step


@dataclass(slots=True)
class Stopwatch:
    """Seconds per step."""

    seconds: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    def lap(self, step: str, parts: Mapping[str, float] | None = None) -> None:
        """Charge the time since the last lap to `step`, which also is a step of the run's trace.

        `parts` of it are charged to steps of their own, called "step: part".
        """
        now = time.perf_counter()
        spent = now - self.started
        for name, seconds in (parts or {}).items():
            self._charge(f"{step}: {name}", seconds)
            spent -= seconds
        self._charge(step, max(spent, 0.0))
        self.started = now
        note_step(step)

    def _charge(self, step: str, seconds: float) -> None:
        self.seconds[step] = round(self.seconds.get(step, 0.0) + seconds, 4)
