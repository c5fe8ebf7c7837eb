"""Start, find and stop the embedded Neo4j of a data folder."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ringfence.connector.errors import ServerError
from ringfence.connector.neo4j.embedded.folder import DataFolder, ServerInfo
from ringfence.connector.neo4j.embedded.folder_locks import lock_holder, start_lock
from ringfence.connector.neo4j.embedded.jars import VERSION, ServerProgress, class_path
from ringfence.connector.neo4j.embedded.launch import launch, require_packages
from ringfence.connector.neo4j.embedded.options import ServerOptions

__all__ = ["DEFAULT_FOLDER", "ServerStatus", "find_running", "running", "start", "status", "stop"]

DEFAULT_FOLDER = Path(".ringfence") / "neo4j"
POLL_SECONDS = 0.05
DOWNLOAD_SECONDS = 1800.0  # how long a start waits for another one's first download
ANSWER_SECONDS = 5.0
BOLT_HELLO = bytes.fromhex("6060B017 00000404 00000000 00000000 00000000")  # magic, version 4.4


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """`state` is "running", "starting" (or closing), "stale" (it died) or "stopped"."""

    state: str
    data_dir: Path
    log: Path
    server: ServerInfo | None


def start(
    data_dir: Path | str = DEFAULT_FOLDER,
    *,
    options: ServerOptions | None = None,
    attached: bool = False,
    progress: Callable[[ServerProgress], None] | None = None,
    timeout: float = 300.0,
) -> ServerInfo:
    """The server of `data_dir`: the running one, or a new one that answers when this returns.

    An attached server closes when this process ends, however it ends; a detached one runs until
    `stop`. `timeout` (seconds) bounds the wait for the server, not the first download of its
    jars, which `progress` can follow. A store that a crash left open is recovered by Neo4j.
    """
    folder = DataFolder(Path(data_dir))
    folder.create()
    with start_lock(folder.start_lock, timeout + DOWNLOAD_SECONDS):
        if server := _await_running(folder, timeout):
            return _noted(folder, server)
        require_packages()
        jars = class_path(progress)
        if progress:
            progress(ServerProgress("start", len(jars), len(jars), 0, 0))
        return _run(folder, options or ServerOptions(), jars, attached, timeout)


@contextmanager
def running(
    data_dir: Path | str = DEFAULT_FOLDER,
    *,
    options: ServerOptions | None = None,
    progress: Callable[[ServerProgress], None] | None = None,
) -> Iterator[ServerInfo]:
    """A server for the length of a `with` block; one that already ran is left running."""
    before = set(_children)
    server = start(data_dir, options=options, attached=True, progress=progress)
    try:
        yield server
    finally:
        if server.pid in set(_children) - before:
            stop(data_dir)


def find_running(data_dir: Path | str = DEFAULT_FOLDER) -> ServerInfo | None:
    """The server that runs on `data_dir`, or None. Starts nothing and waits for nothing."""
    return status(data_dir).server


def status(data_dir: Path | str = DEFAULT_FOLDER) -> ServerStatus:
    """What `data_dir` holds now: a running, starting, stale or stopped server."""
    folder = DataFolder(Path(data_dir))
    pid, state = lock_holder(folder.server_lock), folder.state()
    if pid is None:
        return ServerStatus("stale" if state else "stopped", folder.path, folder.log, None)
    if state is None or state.pid != pid:
        return ServerStatus("starting", folder.path, folder.log, None)
    return ServerStatus("running", folder.path, folder.log, folder.info(state))


def stop(data_dir: Path | str = DEFAULT_FOLDER, *, timeout: float = 30.0) -> bool:
    """Close the server of `data_dir`; True if one ran.

    It gets SIGTERM, and is killed if it has not closed after `timeout` seconds: Neo4j then recovers
    the store at the next start. Only the process that holds the folder's lock, according to the
    kernel, is ever sent a signal.
    """
    folder = DataFolder(Path(data_dir))
    pid = lock_holder(folder.server_lock)
    if pid is not None:
        _signal(pid, signal.SIGTERM)
        if not _await_end(folder, pid, timeout):
            _signal(pid, signal.SIGKILL)
            _await_end(folder, pid, timeout)
        _reap(pid)
    folder.state_file.unlink(missing_ok=True)
    return pid is not None


# processes that this one started, kept so that they can be reaped when they end
_children: dict[int, subprocess.Popen[bytes]] = {}


def _run(
    folder: DataFolder, options: ServerOptions, jars: list[Path], attached: bool, timeout: float
) -> ServerInfo:
    _reap_ended()
    child = launch(folder, options, jars, attached)
    try:
        server = _await_running(folder, timeout, child)
    except BaseException:
        child.kill()
        child.wait()
        raise
    if server is None:
        child.wait()
        raise _failed(folder, f"the server ended with exit code {child.returncode}")
    _children[child.pid] = child
    return _noted(folder, server)


def _noted(folder: DataFolder, server: ServerInfo) -> ServerInfo:
    # also for a server that another start left before it could write the address down
    if folder.last_port() != server.port:
        folder.write_credentials(server.password, server.port)
    return server


def _await_running(
    folder: DataFolder, timeout: float, child: subprocess.Popen[bytes] | None = None
) -> ServerInfo | None:
    """The server once it answers; None when none runs (any more)."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        state = status(folder.path)
        if state.server is not None and _answers(state.server.port):
            return state.server
        alive = child.poll() is None if child else state.state in ("running", "starting")
        if not alive:
            return None
        time.sleep(POLL_SECONDS)
    raise _failed(folder, "the server does not answer yet")


def _answers(port: int) -> bool:
    """Whether a Bolt server agrees on a version: a killed process holds its lock a moment more."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(BOLT_HELLO)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def _await_end(folder: DataFolder, pid: int, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while lock_holder(folder.server_lock) == pid:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _reap(pid: int) -> None:
    child = _children.pop(pid, None)
    if child is not None:
        child.wait()


def _reap_ended() -> None:
    for pid in [pid for pid, child in _children.items() if child.poll() is not None]:
        del _children[pid]


def _failed(folder: DataFolder, problem: str) -> ServerError:
    return ServerError(
        found="\n  ".join([f"{problem}; the end of {folder.log}:", *folder.log_tail()]),
        needed=f"Neo4j {VERSION} answering on 127.0.0.1",
        next_step=(
            f"read {folder.log} and {folder.logs / 'debug.log'}; "
            f"`ringfence neo4j stop --data {folder.path}` ends what is left of it"
        ),
    )
