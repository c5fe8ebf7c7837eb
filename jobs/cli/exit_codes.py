"""How a command ends, for scripts and supervisors. 0 is success."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process of `ringfence` returns when it does not return 0."""

    ERROR = 1  # an error in three parts on stderr, or a finding of doctor or verify
    COVERAGE_ALARM = 2  # `audit`: an alarm fires
    SCHEDULER_DEAD = 3  # `schedule`: the watchdog ended the process; start it again
