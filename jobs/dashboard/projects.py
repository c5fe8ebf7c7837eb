"""Several projects under one server: each at `/p/NAME/`, and a page with the state of all.

Each project is the application that it would be alone, with its own login and its own names of
hosts; only its addresses and cookies have the path before them. The page with all of them names
every project, and tells the state of those that the visitor is logged in to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ringfence.connector.errors import RingfenceError
from ringfence.connector.store import migrate
from ringfence.jobs.dashboard import routes
from ringfence.jobs.dashboard.address import root_of
from ringfence.jobs.dashboard.app import create_app
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.html import render
from ringfence.jobs.dashboard.pages.today import REFRESH_SECONDS
from ringfence.jobs.dashboard.security import Guard
from ringfence.jobs.views.today import TodayLine, promise_line, waiting_line

LOGIN = "Log in to see its state"
NO_ANSWER = "Its audit store gives no answer"

Dashboards = Mapping[str, Dashboard]
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ProjectState:
    """A project on the page with all: two lines of its Today, or why there are none."""

    name: str
    root: str
    lines: tuple[TodayLine, ...]
    note: str = ""


class ProjectsApp:
    """Passes a request on to its project's application, without the path before its address."""

    def __init__(self, dashboards: Sequence[Dashboard]) -> None:
        self.projects: dict[str, ASGIApp] = {
            dashboard.settings.project: create_app(dashboard) for dashboard in dashboards
        }
        self.index = create_index(dashboards)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by its project, or by the page with all of them."""
        parts = scope.get("raw_path", b"").split(b"/", 3)
        if len(parts) < 4 or parts[1] != b"p":
            await self.index(scope, receive, send)
            return
        project = self.projects.get(unquote(parts[2].decode("latin-1")))
        if project is None:
            await self.index(scope, receive, send)
            return
        rest = b"/" + parts[3]
        inner = {**scope, "raw_path": rest, "path": unquote(rest.decode("latin-1"))}
        await project(inner, receive, send)


def create_index(dashboards: Sequence[Dashboard]) -> FastAPI:
    """Return the application of what belongs to no project: the page with all, health, files."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.dashboards = {dashboard.settings.project: dashboard for dashboard in dashboards}
    app.include_router(router)
    app.add_api_route("/healthz", routes.healthz, methods=["GET", "HEAD"])
    app.add_api_route("/favicon.ico", routes.favicon)
    app.add_api_route("/static/{name}", routes.file)
    hosts = frozenset[str]().union(*(dashboard.guard.hosts for dashboard in dashboards))
    app.middleware("http")(Guard(None, hosts, 0.0, https=False))
    app.add_exception_handler(404, _missing)
    return app


@router.get("/", response_class=HTMLResponse)
def show_projects(request: Request) -> Response:
    """The page with all projects."""
    return HTMLResponse(_render(request))


@router.get("/p/{name:path}")
def enter(request: Request, name: str) -> Response:
    """A project's address without the slash at its end."""
    if name not in request.app.state.dashboards:
        raise HTTPException(404)
    return RedirectResponse(f"{root_of(name)}/", 303)


@router.api_route("/readyz", methods=["GET", "HEAD"])
def readyz(request: Request) -> Response:
    """The audit stores of all projects answer and have the right version."""
    for name, dashboard in request.app.state.dashboards.items():
        try:
            migrate.require_sql(dashboard.store)
        except RingfenceError as error:
            return PlainTextResponse(f"{name}: {error.found}\n", 503)
    return PlainTextResponse("ready\n")


def read_state(dashboard: Dashboard, request: Request) -> ProjectState:
    """Return a project's state as far as a visitor may see it."""
    name, root = dashboard.settings.project, dashboard.root
    if dashboard.guard.role_of_session(request) is None:
        return ProjectState(name, root, (), LOGIN)
    try:
        lines = (promise_line(dashboard.queries), waiting_line(dashboard.queries))
    except RingfenceError:
        return ProjectState(name, root, (), NO_ANSWER)
    return ProjectState(name, root, lines)


async def _missing(request: Request, error: Exception) -> Response:
    del error
    return HTMLResponse(_render(request, "There is no such page."), 404)


def _render(request: Request, problem: str = "") -> str:
    dashboards: Dashboards = request.app.state.dashboards
    states = [] if problem else [read_state(each, request) for each in dashboards.values()]
    return render("projects.html", states=states, problem=problem, refresh_seconds=REFRESH_SECONDS)
