"""The time limit of an explanation, loading included, and its message when it is over."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Deadline:
    """So many seconds from now; None for no limit.

    A step that is under way is finished: loading the mirror, scoring the calibration nodes, one
    question, one pass of a module. No further one is begun.
    """

    seconds: float | None
    began: float = field(default_factory=time.monotonic)

    def over(self) -> bool:
        """Whether the time is over."""
        return self.seconds is not None and time.monotonic() - self.began > self.seconds

    def describe(self, done: str) -> str:
        """Say which step was the last one within the limit.

        >>> Deadline(2.0).describe("loading the graph")
        'the limit of 2 s was over after loading the graph'
        """
        limit = "the time" if self.seconds is None else f"the limit of {self.seconds:g} s"
        return f"{limit} was over after {done}"
