"""Errors that say what was found, what was needed and what to do next.

RingfenceError
└── ServerError        the embedded Neo4j could not be installed, started or stopped
"""

__all__ = ["RingfenceError", "ServerError"]


class RingfenceError(Exception):
    """Base of every error that ringfence raises on purpose.

    >>> print(RingfenceError(found="no label", needed="a label", next_step="ringfence doctor"))
    found:  no label
    needed: a label
    next:   ringfence doctor
    """

    def __init__(self, *, found: str, needed: str, next_step: str) -> None:
        super().__init__(found, needed, next_step)
        self.found = found
        self.needed = needed
        self.next_step = next_step

    def __str__(self) -> str:
        return f"found:  {self.found}\nneeded: {self.needed}\nnext:   {self.next_step}"


class ServerError(RingfenceError):
    """The embedded Neo4j could not be installed, started or stopped."""
