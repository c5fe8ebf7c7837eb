"""`ringfence serve`: the dashboard on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import closing, suppress

from ringfence.connector.errors import ConfigError
from ringfence.connector.store import migrate
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import open_audit

SHUTDOWN_SECONDS = 10  # for answers on their way when a signal ends the dashboard


def run_server(settings: Settings, ready: Callable[[str], None] = lambda _url: None) -> None:
    """Serve until a signal ends it; `ready` gets the address once it is open."""
    try:
        import uvicorn

        from ringfence.jobs.dashboard.app import create_app
        from ringfence.jobs.dashboard.connections import request_limits
        from ringfence.jobs.dashboard.context import Dashboard
        from ringfence.jobs.dashboard.security import guard_of
    except ModuleNotFoundError as error:
        raise ConfigError(
            found=f"the dashboard's parts are not installed ({error.name})",
            needed="fastapi, uvicorn, jinja2, plotly, prometheus-client",
            next_step="pip install 'ringfence[serve]'",
        ) from None
    guard = guard_of(settings)
    with open_audit(settings) as store:
        migrate.require_sql(store)
        with closing(Dashboard(settings, store, guard)) as dashboard, _listen(settings) as listener:
            config = uvicorn.Config(
                create_app(dashboard), log_level="warning", server_header=False, access_log=False,
                proxy_headers=False, timeout_graceful_shutdown=SHUTDOWN_SECONDS, **request_limits(),
            )  # fmt: skip
            ready(address(settings, listener))
            with suppress(KeyboardInterrupt):  # how a person ends it
                uvicorn.Server(config).run(sockets=[listener])


def changed(settings: Settings, host: str | None, port: int | None) -> Settings:
    """Return the settings with the command line's host and port."""
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    return settings.model_copy(update={"serve": settings.serve.model_copy(update=given)})


def somebody_watches() -> bool:
    """Whether a person sits at a terminal, and no machine runs this."""
    return sys.stdout.isatty() and not os.environ.get("CI")


def show_in_browser(url: str) -> None:
    """Open the page where there is a screen; a text browser would take the terminal."""
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if screen or sys.platform in {"darwin", "win32"}:
        webbrowser.open(url)


def address(settings: Settings, listener: socket.socket) -> str:
    """Return the URL under which the dashboard is open."""
    host = settings.serve.host
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}/"


def _listen(settings: Settings) -> socket.socket:
    serve = settings.serve
    family = socket.AF_INET6 if ":" in serve.host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((serve.host, serve.port))
        listener.listen(128)  # from here on callers wait instead of being refused
    except OSError as error:
        listener.close()
        raise ConfigError(
            found=f"can't listen on {serve.host}:{serve.port} ({error.strerror})",
            needed="a free port on an address of this machine",
            next_step="ringfence serve --port 0   (takes a free one)",
        ) from None
    return listener
