"""Where the seconds of a run go."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ringfence.jobs.telemetry.traced_run import note_step


@dataclass(slots=True)
class Stopwatch:
    """Seconds per step."""

    seconds: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    def lap(self, step: str) -> None:
        """Charge the time since the last lap to `step`, which is one of the run's trace too."""
        now = time.perf_counter()
        self.seconds[step] = round(self.seconds.get(step, 0.0) + now - self.started, 4)
        self.started = now
        note_step(step)
