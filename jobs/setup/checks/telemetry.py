"""Whether enabled traces can be sent: the extra is installed, and the receiver answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from ringfence.connector.extras import install_command, missing_packages
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding

PORTS = {"http": 80, "https": 443}


def check_telemetry(settings: Settings) -> Iterator[Finding]:
    """Look for the extra and for the receiver; without traces there is nothing to check."""
    telemetry = settings.telemetry
    if not telemetry.traces:
        return
    if missing := missing_packages("telemetry"):
        text = f"[telemetry] traces are on, but {' and '.join(missing)} is not installed"
        yield Finding("warning", text, install_command("telemetry"))
        return
    address = urlsplit(telemetry.endpoint)
    port = address.port or PORTS[address.scheme]
    try:
        socket.create_connection((address.hostname or "", port), telemetry.timeout_seconds).close()
    except OSError as error:
        text = f"nobody takes traces at {address.hostname}:{port} ({type(error).__name__})"
        yield Finding("warning", text, "start the receiver, or correct [telemetry] endpoint")
        return
    yield Finding("ok", f"traces go to {address.hostname}:{port}")
