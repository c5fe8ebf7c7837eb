"""The addresses besides the pages: downloads, login, metrics, health, static files, errors."""

from __future__ import annotations

import gzip
import importlib.util
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from ringfence.connector.errors import RingfenceError
from ringfence.connector.store import migrate
from ringfence.connector.store.audit_chain.actor import acting_as
from ringfence.connector.store.queries.worklist import WorklistNode
from ringfence.connector.store.worklist.marks import (
    MAX_MARKS,
    OUTCOMES,
    MarkRequest,
    record_marks,
)
from ringfence.jobs.dashboard.address import page_address
from ringfence.jobs.dashboard.dependencies import Queries, dashboard_of
from ringfence.jobs.dashboard.html import render, static
from ringfence.jobs.dashboard.metrics import exposition
from ringfence.jobs.dashboard.page_routes import REMEMBERED_SECONDS, answer_page
from ringfence.jobs.dashboard.pages.model import find_card
from ringfence.jobs.dashboard.pages.trail import export_chain
from ringfence.jobs.dashboard.pages.worklist import (
    list_wanted,
    sample_wanted_by,
    shown_columns,
    values_of_rows,
    wanted_by,
)
from ringfence.jobs.dashboard.pages.worklist_place import node_address, own_address
from ringfence.jobs.dashboard.request_facts import address_of
from ringfence.jobs.dashboard.security import CSRF, NAME
from ringfence.jobs.dashboard.time_range import histories
from ringfence.jobs.lifecycle.card_page import FORMATS as CARD_FORMATS
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.views.tables import TABLES, as_csv
from ringfence.jobs.worklist.sample_table import sample_csv
from ringfence.jobs.worklist.table import csv_lines

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
CARD_FILES = {
    "html": ("html", "text/html"),
    "markdown": ("md", "text/markdown"),
    "json": ("json", "application/json"),
}
"""By format, how a model's card is named as a file, and its kind."""
MAX_KEY_CHARS = 512  # of a record's key in a form; a longer one names no node
NO_GRAPH = "the graph gave no answer within two seconds: take the CSV without columns of the graph"
CACHE_FOR_A_DAY = "public, max-age=86400"


@router.get("/trail/export")
def export(queries: Queries) -> Response:
    """The whole chain."""
    body = export_chain(queries)
    return _download(body, "chain.jsonl", "application/x-ndjson")


@router.get("/csv/worklist")
def worklist(request: Request, queries: Queries) -> Response:
    """The whole worklist, or the audit sample, as CSV, row by row.

    Columns of the graph break the download off where it gives no answer: a file without them would
    look whole.
    """
    dashboard = dashboard_of(request)
    names = shown_columns(dashboard, request)

    def ask_values(
        nodes: Sequence[WorklistNode], names: Sequence[str]
    ) -> Mapping[str, Sequence[str | None]]:
        values = values_of_rows(dashboard, nodes, names)
        if values is None:
            raise HTTPException(503, NO_GRAPH)
        return values

    if request.query_params.get("sample"):
        lines = sample_csv(queries, sample_wanted_by(request))
    else:
        wanted = wanted_by(request)
        if wanted.list_ is not None:
            wanted = list_wanted(queries, wanted).wanted
        if names and dashboard.graph.ask(lambda _: True) is None:
            raise HTTPException(503, NO_GRAPH)
        lines = csv_lines(queries, wanted, names, ask_values)
    headers = {"Content-Disposition": 'attachment; filename="worklist.csv"'}
    return StreamingResponse(lines, media_type="text/csv", headers=headers)


@router.post("/marks")
def mark(
    request: Request,
    csrf: Annotated[str, Form(max_length=200)] = "",
    key: Annotated[list[str] | None, Form(max_length=MAX_MARKS)] = None,
    action: Annotated[str, Form(max_length=20)] = "",
    who: Annotated[str, Form(max_length=200)] = "",
    note: Annotated[str, Form(max_length=2000)] = "",
    about: Annotated[str, Form(max_length=512)] = "",
    assignee: Annotated[str, Form(max_length=200)] = "",
    back: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Mark nodes of the worklist, in the name that the proxy or the form gives.

    An outcome as `action` ends the work on them.
    """
    dashboard = dashboard_of(request)
    guard = dashboard.guard
    if not guard.is_own_form(request, csrf):
        raise HTTPException(403, "this form is not from a page of this dashboard")
    if guard.role_of(request) != "operator":
        raise HTTPException(403, "viewers can't mark nodes; log in with the operators' token")
    if guard.user_header is not None:
        who = guard.user_of(request) or ""
    source, project = key_source(dashboard.settings), dashboard.settings.project
    keys = [node_key[:MAX_KEY_CHARS] for node_key in key or ()]
    outcome, assigned = (action, "done") if action in OUTCOMES else (None, action)
    asked = [
        MarkRequest(
            node_key, who, assigned, note, outcome,
            (about or None) if outcome else None,
            (assignee.strip() or None) if action == "claim" else None,
        )
        for node_key in keys
    ]  # fmt: skip
    try:
        with acting_as("serve", who.strip() or None):
            record_marks(dashboard.store, project, source, asked)
    except RingfenceError as error:
        raise HTTPException(400, str(error)) from None
    address = own_address(back, node_address(keys[0]))
    answer = RedirectResponse(f"{guard.root}{address}", 303)
    if guard.user_header is None:
        guard.set_cookie(answer, NAME, quote(who.strip()), REMEMBERED_SECONDS)
    return answer


@router.get("/models/{version}/card/{name}")
def card(queries: Queries, version: str, name: str) -> Response:
    """A model's card as a file: HTML, Markdown or JSON."""
    if name not in CARD_FILES:
        raise HTTPException(404, f"cards come as {', '.join(CARD_FILES)}")
    ending, kind = CARD_FILES[name]
    return _download(CARD_FORMATS[name](find_card(queries, version)), f"model-card.{ending}", kind)


@router.get("/csv/{name}")
def table(request: Request, queries: Queries, name: str) -> Response:
    """A table as CSV: all of it, or what lies in the range of the address."""
    if name not in TABLES:
        raise HTTPException(404, f"there is no table {name}")
    address = page_address(request.url.path, request.query_params.multi_items())
    within, _ = histories(queries, address)
    body = as_csv(TABLES[name].read(within.unlimited()))
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
    address = address_of(request)
    guesses = guard.too_often(address)
    sid = guard.log_in(token, address) if guard.token else None
    if sid is None and guesses:
        return _ask(request, "Too many wrong tokens. Only the right one gets an answer now.", 429)
    if sid is None:
        return _ask(request, "That is not the token.", 401)
    answer = RedirectResponse(f"{guard.root}/", 303)
    guard.begin_session(answer, sid)
    return answer


@router.post("/logout")
def leave(request: Request, csrf: Annotated[str, Form(max_length=200)] = "") -> Response:
    """End the session."""
    guard = dashboard_of(request).guard
    if not guard.is_own_form(request, csrf):
        raise HTTPException(403, "this form is not from a page of this dashboard")
    guard.log_out(request)
    answer = RedirectResponse(f"{guard.root}/login", 303)
    guard.end_session(answer)
    return answer


@router.get("/metrics")
def metrics(queries: Queries) -> Response:
    """Numbers for Prometheus."""
    body = exposition(queries)
    return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.api_route("/healthz", methods=["GET", "HEAD"])
def healthz() -> Response:
    """The process answers."""
    return PlainTextResponse("ok\n")


@router.api_route("/readyz", methods=["GET", "HEAD"])
def readyz(request: Request) -> Response:
    """The audit store answers and has the right version."""
    try:
        migrate.require_sql(dashboard_of(request).store)
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
    if name not in {
        "ringfence.css",
        "charts.js",
        "tables.js",
        "refresh.js",
        "lists.js",
        "favicon.svg",
    }:
        raise HTTPException(404, "there is no such file")
    kind = KINDS[name.rpartition(".")[2]]
    return Response(static(name), media_type=kind, headers={"Cache-Control": "no-cache"})


def refused(request: Request, error: Exception) -> Response:
    """Answer what went wrong: JSON for programs, a page for people."""
    status = getattr(error, "status_code", 500)
    detail = str(getattr(error, "detail", "something went wrong"))
    if request.url.path.startswith("/api/"):
        return JSONResponse({"detail": detail}, status)
    values = {"title": "Not there" if status == 404 else "Not possible", "sentence": detail}
    answer = answer_page(request, "missing.html", "", values | {"figures": []})
    answer.status_code = status
    return answer


def _ask(request: Request, problem: str = "", status: int = 200) -> Response:
    dashboard = dashboard_of(request)
    guard, project = dashboard.guard, dashboard.settings.project
    nonce = request.cookies.get(CSRF) or secrets.token_urlsafe(24)
    frame = {"csrf": guard.form_token(nonce), "root": guard.root, "project": project}
    body = render("login.html", problem=problem, **frame)
    answer = HTMLResponse(body, status)
    guard.set_cookie(answer, CSRF, nonce)
    return answer


def _download(body: str, name: str, kind: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=kind, headers=headers)


def _cached() -> dict[str, str]:
    return {"Cache-Control": CACHE_FOR_A_DAY}


@lru_cache(maxsize=1)
def _plotly() -> bytes:
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise HTTPException(404, "plotly is not installed: pip install 'ringfence[serve]'")
    script = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return gzip.compress(script.read_bytes(), 6)
