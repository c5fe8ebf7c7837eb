"""The routes of the pages: one per entry of `PAGES`, inside the frame that all pages share."""

# No `from __future__ import annotations` here: FastAPI must find the page's own `build` in the
# annotation, and as text it would look for it among the names of this module.

import secrets
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from ringfence.jobs.dashboard.dependencies import dashboard_of
from ringfence.jobs.dashboard.html import render
from ringfence.jobs.dashboard.pages import PAGES, Page
from ringfence.jobs.dashboard.pages.page import Values
from ringfence.jobs.dashboard.security import CSRF

REMEMBERED_SECONDS = 400 * 86_400  # what pages remember of a person: as long as browsers keep it


def answer_page(request: Request, template: str, here: str, values: Values) -> HTMLResponse:
    """Return a page within the frame that all share; `here` is the marked navigation entry.

    `remember` among the values are cookies of the page.
    """
    remember = values.pop("remember", {})
    dashboard = dashboard_of(request)
    nonce = request.cookies.get(CSRF) or secrets.token_urlsafe(24)
    guard = dashboard.guard
    frame = {
        "here": here,
        "project": dashboard.settings.project,
        "root": dashboard.root,
        "csrf": guard.form_token(nonce),
        "locked": guard.token is not None,
    }
    answer = HTMLResponse(render(template, **values, **frame))
    guard.set_cookie(answer, CSRF, nonce)
    for name, value in remember.items():
        guard.set_cookie(answer, name, value, REMEMBERED_SECONDS)
    return answer


def show_page(page: Page) -> Callable[..., HTMLResponse]:
    """Return the function that answers a page's address; its parameters are those of `build`."""

    def show(request: Request, values: Annotated[Values, Depends(page.build)]) -> HTMLResponse:
        return answer_page(request, page.template, page.navigation_address, values)

    return show


router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
for opened in PAGES:
    router.add_api_route(opened.address, show_page(opened), methods=["GET"], name=opened.name)
