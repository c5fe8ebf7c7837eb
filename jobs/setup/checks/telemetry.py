"""Whether traces that are switched on can leave: the extra is there, and the receiver answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from importlib.util import find_spec
from urllib.parse import urlsplit

from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding

PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
PORTS = {"http": 80, "https": 443}


def check_telemetry(settings: Settings) -> Iterator[Finding]:
    """Look for the extra and for the receiver; without traces there is nothing to say."""
    telemetry = settings.telemetry
    if not telemetry.traces:
        return
    if missing := [name for name in PACKAGES if not _is_installed(name)]:
        text = f"[telemetry] traces are on, but {' and '.join(missing)} is not installed"
        yield Finding("warning", text, "pip install 'ringfence[telemetry]'")
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


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package above it
        return False
