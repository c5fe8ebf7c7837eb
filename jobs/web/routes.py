"""The addresses that people open: pages, CSV, static files, health."""

from __future__ import annotations

import gzip
import importlib.util
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)

from ringfence.connector import migrate_sql
from ringfence.connector.errors import RingfenceError
from ringfence.jobs.explain import explain
from ringfence.jobs.shown import TABLES, as_csv
from ringfence.jobs.web import pages
from ringfence.jobs.web.api import dashboard_of
from ringfence.jobs.web.metrics import exposition
from ringfence.jobs.web.rendering import render, static
from ringfence.jobs.web.security import CSRF, SESSION

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
YEAR = "public, max-age=86400"


def page(request: Request, template: str, here: str, values: dict[str, Any]) -> HTMLResponse:
    """Return a page within the frame that all share."""
    dashboard = dashboard_of(request)
    nonce = request.cookies.get(CSRF) or secrets.token_urlsafe(24)
    csrf = dashboard.guard.form_token(nonce) if dashboard.guard.token else ""
    body = render(template, **values, here=here, project=dashboard.settings.project, csrf=csrf)
    answer = HTMLResponse(body)
    if csrf:
        dashboard.guard.set_cookie(answer, CSRF, nonce)
    return answer


@router.get("/")
def today(request: Request) -> Response:
    """Today."""
    return page(request, "today.html", "/", pages.today(dashboard_of(request).look))


@router.get("/coverage")
def coverage(request: Request) -> Response:
    """Coverage."""
    return page(request, "page.html", "/coverage", pages.coverage(dashboard_of(request).look))


@router.get("/classes")
def classes(request: Request) -> Response:
    """Classes and groups."""
    return page(request, "page.html", "/classes", pages.classes(dashboard_of(request).look))


@router.get("/thresholds")
def thresholds(request: Request) -> Response:
    """Thresholds."""
    return page(request, "page.html", "/thresholds", pages.thresholds(dashboard_of(request).look))


@router.get("/drift")
def drift(request: Request) -> Response:
    """Drift."""
    dashboard = dashboard_of(request)
    values = pages.drift(dashboard.look, dashboard.settings.conformal.rule)
    return page(request, "drift.html", "/drift", values)


@router.get("/runs")
def runs(request: Request) -> Response:
    """All runs."""
    return page(request, "runs.html", "/runs", pages.runs(dashboard_of(request).look))


@router.get("/runs/compare")
def compare(request: Request, a: int, b: int) -> Response:
    """Two runs side by side."""
    look = dashboard_of(request).look
    one, two = look.run(_number(a)), look.run(_number(b))
    if one is None or two is None:
        raise HTTPException(404, f"there is no run {a if one is None else b}")
    return page(request, "compare.html", "/runs", pages.compare(one, two))


@router.get("/runs/{seq}")
def run(request: Request, seq: int) -> Response:
    """One run."""
    look = dashboard_of(request).look
    found = look.run(_number(seq))
    if found is None:
        raise HTTPException(404, f"there is no run {seq}")
    return page(request, "run.html", "/runs", pages.one_run(look, found))


@router.get("/node")
def node(request: Request, key: Annotated[str, Query(max_length=512)] = "") -> Response:
    """One node."""
    dashboard = dashboard_of(request)
    found = None
    if key:
        found = explain(dashboard.look, key, dashboard.graph(), dashboard.settings.mapping())
    return page(request, "node.html", "/node", pages.node(found, key, dashboard.how_to_start()))


@router.get("/trail")
def trail(request: Request) -> Response:
    """The audit trail."""
    dashboard = dashboard_of(request)
    state, words = dashboard.verify()
    shown = pages.tables(dashboard.look, "chain", "alarm-events")
    values = {"title": "Audit trail", "state": state, "verified": words, "tables": shown}
    return page(request, "trail.html", "/trail", values | {"figures": []})


@router.get("/trail/export")
def export(request: Request) -> Response:
    """The whole chain."""
    body = pages.export_chain(dashboard_of(request).look)
    return _download(body, "chain.jsonl", "application/x-ndjson")


@router.get("/csv/{name}")
def table(request: Request, name: str) -> Response:
    """A table as CSV."""
    if name not in TABLES:
        raise HTTPException(404, f"there is no table {name}")
    body = as_csv(TABLES[name](dashboard_of(request).look.whole()))
    return _download(body, f"{name}.csv", "text/csv")


@router.get("/login")
def login(request: Request) -> Response:
    """Ask for the token."""
    return _ask(request)


@router.post("/login")
def enter(
    request: Request,
    csrf: Annotated[str, Form(max_length=200)] = "",
    token: Annotated[str, Form(max_length=1000)] = "",
) -> Response:
    """Check the token and begin a session."""
    guard = dashboard_of(request).guard
    if not guard.is_own_form(request, csrf):
        return _ask(request, "This form is too old; please try again.", 403)
    if guard.too_often():
        return _ask(request, "Too many wrong tokens. Wait a minute.", 429)
    sid = guard.log_in(token) if guard.token else None
    if sid is None:
        return _ask(request, "That is not the token.", 401)
    answer = RedirectResponse("/", 303)
    guard.set_cookie(answer, SESSION, sid)
    return answer


@router.post("/logout")
def leave(request: Request, csrf: Annotated[str, Form(max_length=200)] = "") -> Response:
    """End the session."""
    guard = dashboard_of(request).guard
    if not guard.is_own_form(request, csrf):
        raise HTTPException(403, "this form is not from a page of this dashboard")
    guard.log_out(request)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(SESSION)
    return answer


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Numbers for Prometheus."""
    body = exposition(dashboard_of(request).look)
    return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/healthz")
def healthz() -> Response:
    """The process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
def readyz(request: Request) -> Response:
    """The audit store answers and has the right version."""
    try:
        migrate_sql.require_sql(dashboard_of(request).store)
    except RingfenceError as error:
        return PlainTextResponse(f"{error.found}\n", 503)
    return PlainTextResponse("ready\n")


@router.get("/favicon.ico")
def favicon() -> Response:
    """The mark."""
    return Response(static("favicon.svg"), media_type=KINDS["svg"], headers=_cached())


@router.get("/static/{name}")
def file(request: Request, name: str) -> Response:
    """A file of the dashboard, or plotly out of the installed package, packed."""
    if name == "plotly.min.js":
        headers = _cached() | {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(_plotly(), media_type=KINDS["js"], headers=headers)
        return Response(gzip.decompress(_plotly()), media_type=KINDS["js"], headers=_cached())
    if name not in {"ringfence.css", "charts.js", "favicon.svg"}:
        raise HTTPException(404, "there is no such file")
    kind = KINDS[name.rpartition(".")[2]]
    return Response(static(name), media_type=kind, headers={"Cache-Control": "no-cache"})


def refused(request: Request, error: Exception) -> Response:
    """Answer what went wrong: JSON for programs, a page for people."""
    status = getattr(error, "status_code", 500)
    words = str(getattr(error, "detail", "something went wrong"))
    if request.url.path.startswith("/api/"):
        return JSONResponse({"detail": words}, status)
    values = {"title": "Not there" if status == 404 else "Not possible", "words": words}
    answer = page(request, "missing.html", "", values | {"figures": []})
    answer.status_code = status
    return answer


def _ask(request: Request, problem: str = "", status: int = 200) -> Response:
    guard = dashboard_of(request).guard
    nonce = request.cookies.get(CSRF) or secrets.token_urlsafe(24)
    body = render("login.html", csrf=guard.form_token(nonce), problem=problem)
    answer = HTMLResponse(body, status)
    guard.set_cookie(answer, CSRF, nonce)
    return answer


def _download(body: str, name: str, kind: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=kind, headers=headers)


def _number(seq: int) -> int:
    return seq if 0 <= seq < 2**62 else 0


def _cached() -> dict[str, str]:
    return {"Cache-Control": YEAR}


@lru_cache(maxsize=1)
def _plotly() -> bytes:
    found = importlib.util.find_spec("plotly")
    if found is None or found.origin is None:
        raise HTTPException(404, "plotly is not installed: pip install 'ringfence[serve]'")
    script = Path(found.origin).parent / "package_data" / "plotly.min.js"
    return gzip.compress(script.read_bytes(), 6)
