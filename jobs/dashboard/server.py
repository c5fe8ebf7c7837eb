"""`ringfence serve`: the dashboard on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

from ringfence.connector.errors import ConfigError
from ringfence.connector.store import migrate
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.config.sources.projects import require_addresses
from ringfence.jobs.project.audit_store import open_audit

if TYPE_CHECKING:
    from starlette.types import ASGIApp

SHUTDOWN_SECONDS = 10  # for answers on their way when a signal ends the dashboard


def run_server(settings: Settings, ready: Callable[[str], None] = lambda _url: None) -> None:
    """Serve a project until a signal ends it; `ready` gets the address once it is open."""
    run_servers([settings], ready)


def run_servers(projects: Sequence[Settings], ready: Callable[[str], None]) -> None:
    """Serve a project at the addresses of old, or several at `/p/NAME/`, on the first's address."""
    first = projects[0]
    several = [changed(settings, first.serve.host, first.serve.port) for settings in projects]
    try:
        import uvicorn

        from ringfence.jobs.dashboard.connections import request_limits
    except ModuleNotFoundError as error:
        raise ConfigError(
            found=f"the dashboard's parts are not installed ({error.name})",
            needed="fastapi, uvicorn, jinja2, plotly, prometheus-client",
            next_step="pip install 'ringfence[serve]'",
        ) from None
    with ExitStack() as stack:
        app = _open_app(several, stack)
        listener = stack.enter_context(_listen(first))
        config = uvicorn.Config(
            app, log_level="warning", server_header=False, access_log=False,
            proxy_headers=False, timeout_graceful_shutdown=SHUTDOWN_SECONDS, **request_limits(),
        )  # fmt: skip
        ready(address(first, listener))
        with suppress(KeyboardInterrupt):  # how a person ends it
            uvicorn.Server(config).run(sockets=[listener])


def _open_app(projects: Sequence[Settings], stack: ExitStack) -> ASGIApp:
    """The application over the stores of all projects, which `stack` closes."""
    from ringfence.jobs.dashboard.address import root_of
    from ringfence.jobs.dashboard.app import create_app
    from ringfence.jobs.dashboard.context import Dashboard
    from ringfence.jobs.dashboard.projects import ProjectsApp
    from ringfence.jobs.dashboard.security import guard_of

    is_alone = len(projects) == 1
    require_addresses(projects)
    guards = [guard_of(each, "" if is_alone else root_of(each.project)) for each in projects]
    dashboards = []
    for settings, guard in zip(projects, guards, strict=True):
        store = stack.enter_context(open_audit(settings))
        migrate.require_sql(store)
        dashboards.append(stack.enter_context(closing(Dashboard(settings, store, guard))))
    return create_app(dashboards[0]) if is_alone else ProjectsApp(dashboards)


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
