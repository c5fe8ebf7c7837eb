"""How long-running work reports progress: one callback type for every step, and a no-op.

The caller (a terminal, the scheduler, a test) passes a `Progress`; a step calls it as it goes.
"""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is counted, how many are done, and how many there are (0: not known)."""


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Do nothing: the default of every `progress` argument."""
