"""A real MLflow server for tests, in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from http.client import HTTPConnection

from tests.patience import PATIENCE_SECONDS


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def mlflow_server(tmp_path):
    """Yield its address; nothing of it is kept."""
    port = free_port()
    here = "127.0.0.1", port
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
        "--workers", "1", "--backend-store-uri", f"sqlite:///{tmp_path / 'mlflow.db'}",
        "--artifacts-destination", str(tmp_path / "artifacts"),
    ]  # fmt: skip
    quiet = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
    with (tmp_path / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=quiet, start_new_session=True
        )
        try:
            end = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < end and process.poll() is None:
                try:
                    with closing(HTTPConnection(*here, timeout=PATIENCE_SECONDS)) as asked:
                        asked.request("GET", "/health")
                        if asked.getresponse().status == 200:
                            break
                except OSError:
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # with its workers; nothing of it is kept
            process.wait(PATIENCE_SECONDS)
