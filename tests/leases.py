"""Leases in a time that the test makes: the audit store's clock and the heartbeat are its own."""

import threading
import time

from ringfence.connector.store import lease
from ringfence.connector.store.engine import Store
from ringfence.connector.times import NANOSECONDS
from tests.patience import PATIENCE_SECONDS, wait_until


class StoreClock:
    """The clock of the audit store; it moves where `advance` is called."""

    def __init__(self, monkeypatch):
        self.now_ns = time.time_ns()
        monkeypatch.setattr(Store, "now_ns", lambda _store, _connection: self.now_ns)

    def advance(self, seconds):
        """Let time pass."""
        self.now_ns += int(seconds * NANOSECONDS)


class Heartbeat:
    """Heartbeats that come when the test asks for them; `pauses` are those between two, as asked.

    It stands for the event by which a heartbeat waits, so one heartbeat at a time is under way.
    """

    def __init__(self, monkeypatch):
        self.pauses, self._due, self._stopped = [], threading.Semaphore(0), False
        self._requested = 0
        monkeypatch.setattr(lease, "Event", lambda: self)

    def wait(self, seconds):
        """Wait for the next beat that the test asks for; true where there is to be none."""
        self.pauses.append(seconds)
        assert self._due.acquire(timeout=PATIENCE_SECONDS)
        return self._stopped

    def set(self):
        """End the heartbeat."""
        self._stopped = True
        self._due.release()

    def request(self):
        """Ask for a beat, without waiting for it."""
        self._requested += 1
        self._due.release()

    def beat(self):
        """Let one beat happen to its end; false where the heartbeat is over."""
        self.request()  # there is a pause before the first beat and after each
        wait_until(lambda: len(self.pauses) > self._requested or not self.is_alive(), "a beat")
        return self.is_alive()

    def is_alive(self):
        """Whether there will be another beat."""
        return any(thread.name == "ringfence-lease" for thread in threading.enumerate())
