"""How a command ends, for scripts and supervisors. 0 is success."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process of `ringfence` returns when it does not return 0."""

    ERROR = 1  # an error in three parts on stderr, or a finding of doctor
    USAGE = 2  # options or arguments that the verb does not have; the command line's own library
    SCHEDULER_DEAD = 3  # `schedule`: the watchdog ended the process; start it again
    ALARM = 4  # `audit`: a coverage alarm fires; `verify`, `report --pack`: the record was changed


MEANINGS = {
    0: "fine",
    ExitCode.ERROR: "an error, or a finding of doctor",
    ExitCode.USAGE: "options or arguments that the verb does not have",
    ExitCode.SCHEDULER_DEAD: "schedule: the watchdog ended the process; start it again",
    ExitCode.ALARM: "a coverage alarm (audit) or a changed record (verify, report --pack)",
}
"""What each number means, for `--help` and the README."""
