"""The heartbeat: a lease outlives long work without a write, and ends with its session."""

import time

import pytest
from sqlalchemy import select, update

from ringfence.connector.errors import LeaseHeld, LeaseLost
from ringfence.connector.store import tables
from ringfence.connector.store.lease import acquire, heartbeat, release
from ringfence.connector.store.writer import Writer

pytestmark = pytest.mark.slow

SECONDS = 1.5


def write(store, held):
    with store.transaction() as connection:
        Writer(store, held, b"key").begin(connection)


def expiry(store):
    with store.reading() as connection:
        return connection.execute(select(tables.lease.c.expires_ns)).scalar_one()


def end_lease(store):
    with store.transaction() as connection:
        connection.execute(update(tables.lease).values(expires_ns=1))  # long ago, not released


def test_nobody_takes_the_lease_during_long_work_and_anybody_after_it(store):
    held = acquire(store, "p", "training", SECONDS)
    with heartbeat(store, held):
        end = time.monotonic() + 3 * SECONDS
        while time.monotonic() < end:
            with pytest.raises(LeaseHeld, match="training is working"):
                acquire(store, "p", "score", SECONDS)
            time.sleep(0.1)
        write(store, held)
    release(store, held)
    assert acquire(store, "p", "score", SECONDS).token == held.token + 1


def test_without_the_heartbeat_the_work_is_lost(store):
    held = acquire(store, "p", "training", SECONDS)
    time.sleep(SECONDS + 0.2)
    acquire(store, "p", "score", SECONDS)
    with pytest.raises(LeaseLost, match="another process took over"):
        write(store, held)


def test_a_lease_that_was_lost_is_not_taken_back_and_the_next_write_says_so(store):
    held = acquire(store, "p", "training", SECONDS)
    with heartbeat(store, held):
        end_lease(store)
        other = acquire(store, "p", "score", 60.0)
        until = expiry(store)
        time.sleep(SECONDS)
        assert expiry(store) == until
        with pytest.raises(LeaseLost, match="another process took over"):
            write(store, held)
    write(store, other)


def test_a_lease_that_was_released_is_not_prolonged(store):
    held = acquire(store, "p", "training", SECONDS)
    with heartbeat(store, held):
        release(store, held)
        time.sleep(SECONDS)
        assert expiry(store) == 0


def test_a_beat_waits_for_a_transaction_of_the_session_and_hurts_neither(store):
    held = acquire(store, "p", "training", SECONDS)
    with heartbeat(store, held):
        with store.transaction() as connection:
            Writer(store, held, b"key").begin(connection)
            for _ in range(8):
                time.sleep(0.1 * SECONDS)
                connection.execute(select(tables.lease)).all()
        write(store, held)
        time.sleep(SECONDS)
        with pytest.raises(LeaseHeld):
            acquire(store, "p", "score", SECONDS)
