"""Wait for a server that is temporarily unavailable: a restart in mid-run is no failure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from ringfence.connector.errors import ServerError
from ringfence.connector.neo4j.driver import RETRY_SECONDS

T = TypeVar("T")
PAUSE_SECONDS = 1.0
log = logging.getLogger("ringfence")


def retry_while_unavailable(what: str, work: Callable[[], T], seconds: float = RETRY_SECONDS) -> T:
    """Return `work()`; while the server is unavailable, retry it until `seconds` have passed.

    For reading alone: `work` must leave nothing behind that disturbs its next attempt.
    Writing transactions are repeated by the driver.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return work()
        except ServerError as error:
            if time.monotonic() > deadline:
                raise
            log.warning("%s: %s; trying again", what, error.found)
            time.sleep(PAUSE_SECONDS)
