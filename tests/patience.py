"""Waiting for what must come: the limit ends a hang, and is never a judgement of speed."""

import time

PATIENCE_SECONDS = 600.0


def wait_until(condition, what="it"):
    """Wait until `condition()` is true, and return its value."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.01)
    return value
