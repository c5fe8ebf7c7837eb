"""The heartbeat: a lease outlives long work without a write, and ends with its session.

The store's clock and the beats are the test's own: nothing depends on how fast a machine is.
"""

import threading

import pytest
from sqlalchemy import select

from ringfence.connector.errors import LeaseHeld, LeaseLost
from ringfence.connector.store import lease, tables
from ringfence.connector.store.lease import acquire, heartbeat, release
from ringfence.connector.store.writer import Writer
from ringfence.connector.times import NANOSECONDS
from tests.leases import Heartbeat, StoreClock
from tests.patience import PATIENCE_SECONDS

SECONDS = 60


@pytest.fixture
def clock(monkeypatch):
    return StoreClock(monkeypatch)


@pytest.fixture
def heart(monkeypatch):
    return Heartbeat(monkeypatch)


def write(store, held):
    with store.transaction() as connection:
        Writer(store, held, b"key").begin(connection)


def expiry(store):
    with store.reading() as connection:
        return connection.execute(select(tables.lease.c.expires_ns)).scalar_one()


def test_nobody_takes_the_lease_during_long_work_and_anybody_after_it(store, clock, heart):
    held = acquire(store, "p", "training", SECONDS)
    with heartbeat(store, held):
        for _ in range(9):  # three leases long
            clock.advance(SECONDS / 3)
            assert heart.beat()
            assert expiry(store) == clock.now_ns + SECONDS * NANOSECONDS
            with pytest.raises(LeaseHeld, match="training is working"):
                acquire(store, "p", "score", SECONDS)
        write(store, held)
    assert set(heart.pauses) == {SECONDS / 3}  # two beats may fail before the lease ends
    release(store, held)
    assert acquire(store, "p", "score", SECONDS).token == held.token + 1


def test_without_the_heartbeat_the_work_is_lost(store, clock):
    held = acquire(store, "p", "training", SECONDS)
    clock.advance(SECONDS)
    acquire(store, "p", "score", SECONDS)
    with pytest.raises(LeaseLost, match="another process took over"):
        write(store, held)


def test_a_lease_that_was_lost_is_not_taken_back_and_the_next_write_says_so(store, clock, heart):
    held = acquire(store, "p", "training", SECONDS)
    with heartbeat(store, held):
        clock.advance(SECONDS)
        other = acquire(store, "p", "score", SECONDS)
        until = expiry(store)
        clock.advance(1)
        assert not heart.beat()  # it was the last one
        assert expiry(store) == until
        with pytest.raises(LeaseLost, match="another process took over"):
            write(store, held)
    write(store, other)


def test_a_lease_that_was_released_is_not_prolonged(store, heart):
    held = acquire(store, "p", "training", SECONDS)
    with heartbeat(store, held):
        release(store, held)
        assert not heart.beat()
        assert expiry(store) == 0


def test_a_beat_waits_for_a_transaction_of_the_session_and_hurts_neither(
    store, clock, heart, monkeypatch
):
    began, prolonged, prolong = threading.Event(), threading.Event(), lease._prolong

    def noted(*of):
        began.set()
        kept = prolong(*of)
        prolonged.set()
        return kept

    monkeypatch.setattr(lease, "_prolong", noted)
    held = acquire(store, "p", "training", SECONDS)
    with heartbeat(store, held):
        with store.transaction() as connection:
            Writer(store, held, b"key").begin(connection)
            clock.advance(SECONDS / 2)
            heart.request()
            assert began.wait(PATIENCE_SECONDS)
            for _ in range(8):
                connection.execute(select(tables.lease)).all()
                assert not prolonged.wait(0.02)
        assert prolonged.wait(PATIENCE_SECONDS)
        assert expiry(store) == clock.now_ns + SECONDS * NANOSECONDS
        write(store, held)
        clock.advance(SECONDS / 2)
        with pytest.raises(LeaseHeld):
            acquire(store, "p", "score", SECONDS)
