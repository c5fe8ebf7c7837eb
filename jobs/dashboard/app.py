"""The dashboard as an ASGI application."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ringfence import __version__
from ringfence.connector.errors import RingfenceError
from ringfence.jobs.dashboard import api, page_routes, routes
from ringfence.jobs.dashboard.context import Dashboard


def create_app(dashboard: Dashboard) -> FastAPI:
    """Return the application over an open dashboard; nothing in it reaches another host."""
    app = FastAPI(
        title="ringfence",
        version=__version__,
        summary="Prediction sets with a guaranteed miss rate, and their audit.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        servers=[{"url": dashboard.root}] if dashboard.root else None,
        redirect_slashes=not dashboard.root,  # such a redirect knows nothing of the path before it
    )
    app.state.dashboard = dashboard
    app.include_router(page_routes.router)
    app.include_router(routes.router)
    app.include_router(api.router)
    app.middleware("http")(dashboard.guard)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(RingfenceError, _failed)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    return routes.refused(request, error)


async def _failed(request: Request, error: Exception) -> Response:
    """Answer with an error of ringfence's own, such as a row of the record that was edited."""
    return routes.refused(request, HTTPException(500, str(error)))


async def _unreadable(request: Request, error: Exception) -> Response:
    if request.url.path.startswith("/api/") and isinstance(error, RequestValidationError):
        problems = [
            {name: problem[name] for name in ("loc", "msg", "type")} for problem in error.errors()
        ]
        return JSONResponse({"detail": problems}, 422)
    return routes.refused(request, _as_answer(error))


def _as_answer(error: Exception) -> HTTPException:
    """The message about an address or a form that can't be read."""
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    for problem in errors:
        where, *names = problem["loc"]
        if where != "path" and names:
            message = str(problem["msg"])
            return HTTPException(400, f"{names[-1]}: {message[:1].lower()}{message[1:]}")
    return HTTPException(404, "there is no such page")
