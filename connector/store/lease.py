"""The lease: one process at a time writes for a project, and knows when it no longer may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from ringfence.connector.errors import LeaseHeld, LeaseLost, StoreError
from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import lease
from ringfence.connector.times import NANOSECONDS

BEATS_PER_LEASE = 3  # two may fail before the lease ends


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write for `project` until the database's clock passes the row's expiry.

    `token` grows with every change of hands, so that a process that slept through its lease is
    recognised by its smaller token, here and on the fence node in the graph.
    """

    project: str
    owner: str
    token: int
    seconds: float


def acquire(store: Store, project: str, owner: str, seconds: float) -> Lease:
    """Take the lease of `project`, or raise `LeaseHeld` saying who has it and for how long."""
    _ensure_row(store, project)
    with store.transaction() as connection:
        store.end_when_silent(connection, seconds)
        now = store.now_ns(connection)
        taken = connection.execute(
            update(lease)
            .where(lease.c.project == project, lease.c.expires_ns <= now)
            .values(
                owner=owner,
                token=lease.c.token + 1,
                expires_ns=now + int(seconds * NANOSECONDS),
            )
        )
        row = connection.execute(select(lease).where(lease.c.project == project)).one()
        if taken.rowcount == 0:
            raise LeaseHeld(
                found=f"{row.owner} is working on project {project!r}",
                needed="one process at a time",
                next_step=f"wait; without a sign of life its lease ends in "
                f"{(row.expires_ns - now) / NANOSECONDS:.0f} s",
            )
        return Lease(project, owner, row.token, seconds)


def renew(store: Store, connection: Connection, held: Lease) -> None:
    """Prolong the lease, as the first statement of a write transaction, or raise `LeaseLost`."""
    store.end_when_silent(connection, held.seconds)
    now = store.now_ns(connection)
    kept = connection.execute(
        update(lease)
        .where(lease.c.project == held.project, lease.c.token == held.token)
        .values(expires_ns=now + int(held.seconds * NANOSECONDS))
    )
    if kept.rowcount == 0:
        raise LeaseLost(
            found=f"another process took over project {held.project!r} (after token {held.token})",
            needed="the lease; nothing of this transaction was written",
            next_step="nothing: the other process goes on with the work",
        )


@contextmanager
def heartbeat(store: Store, held: Lease) -> Iterator[None]:
    """Prolong the lease from a thread while the block works without writing, as a training does.

    A process that is killed or frozen beats no more, and its lease ends as before. Where the lease
    was lost the beats end; the next write says so with `LeaseLost`, as `renew` looks for itself.
    """
    stop = Event()

    def beat() -> None:
        while not stop.wait(held.seconds / BEATS_PER_LEASE):
            try:
                if not _prolong(store, held):
                    return
            except (StoreError, SQLAlchemyError):
                continue  # the store is unavailable or busy: the next beat may succeed

    thread = Thread(target=beat, name="ringfence-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(held.seconds)  # one beat may still wait for an unavailable store


def _prolong(store: Store, held: Lease) -> bool:
    """Prolong a lease that is neither lost nor released; return whether it was there."""
    with store.transaction() as connection:
        store.end_when_silent(connection, held.seconds)
        now = store.now_ns(connection)
        kept = connection.execute(
            update(lease)
            .where(
                lease.c.project == held.project,
                lease.c.token == held.token,
                lease.c.expires_ns > 0,
            )
            .values(expires_ns=now + int(held.seconds * NANOSECONDS))
        )
    return kept.rowcount > 0


def release(store: Store, held: Lease) -> None:
    """End the lease now instead of at its expiry; harmless if it was lost already."""
    with store.transaction() as connection:
        connection.execute(
            update(lease)
            .where(lease.c.project == held.project, lease.c.token == held.token)
            .values(expires_ns=0)
        )


def _ensure_row(store: Store, project: str) -> None:
    with store.transaction() as connection:
        if connection.execute(select(lease.c.token).where(lease.c.project == project)).first():
            return
    try:
        with store.transaction() as connection:
            connection.execute(
                insert(lease).values(
                    project=project, owner="", token=0, expires_ns=0, watermark_ns=None, next_seq=1
                )
            )
    except IntegrityError:  # another process made it in between: that is what we wanted
        return
