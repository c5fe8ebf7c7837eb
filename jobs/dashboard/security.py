"""Who may see the dashboard: Host check, login by token, sessions, CSRF, rate limit, headers."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from ringfence.connector.errors import ConfigError
from ringfence.connector.hosts import is_loopback
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.dashboard.request_facts import address_of, bearer_of, holds_nul, host_name
from ringfence.jobs.project.audit_store import secret_text

SESSION, CSRF, NAME = "ringfence_session", "ringfence_csrf", "ringfence_name"
MAX_DIGEST_CHARS = 12  # of a project's address in the name of its session's cookie
MAX_NAME_CHARS = 200
OPEN = ("/login", "/static/", "/healthz", "/readyz", "/favicon.ico")
MIN_TOKEN_CHARS = 16
MAX_FAILURES, FAILURE_WINDOW_SECONDS = 5, 60.0
MAX_SESSIONS = 1_000
MAX_ADDRESSES = 10_000  # whose wrong tokens are remembered
# plotly makes two style elements: an empty one that it fills through CSSOM, and one for maps. No
# other inline style is let in; after an upgrade the browser test tells the new hash.
PLOTLY_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='",
)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    f"style-src 'self' {' '.join(PLOTLY_STYLES)}; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
Next = Callable[[Request], Awaitable[Response]]
Role = Literal["operator", "viewer"]
"""An operator may also mark nodes of the worklist; a viewer sees every page."""


@dataclass(slots=True)
class Guard:
    """Access control of one running dashboard; sessions live in memory and end with the process."""

    token: str | None
    hosts: frozenset[str]
    session_seconds: float
    https: bool
    clock: Callable[[], float] = time.monotonic
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    sessions: dict[str, float] = field(default_factory=dict)
    failures: dict[str, tuple[float, ...]] = field(default_factory=dict)
    viewer_token: str | None = None
    user_header: str | None = None
    viewers: set[str] = field(default_factory=set)
    root: str = ""
    """The path under which a project among several is served; empty for the only one."""

    async def __call__(self, request: Request, call_next: Next) -> Response:
        """Let a request through, or answer it here."""
        guesses = bearer_of(request) is not None and self.too_often(address_of(request))
        if host_name(request.headers.get("host", "")) not in self.hosts:
            answer: Response = PlainTextResponse("this dashboard has another name\n", 400)
        elif holds_nul(request):
            answer = PlainTextResponse("the address holds a NUL character\n", 400)
        elif self.may_pass(request):
            answer = await call_next(request)
        elif guesses:
            answer = PlainTextResponse(
                "too many wrong tokens; only the right one gets an answer now\n",
                429,
                {"Retry-After": f"{FAILURE_WINDOW_SECONDS:.0f}"},
            )
        elif request.url.path.startswith(("/api/", "/metrics", "/csv/")):
            answer = PlainTextResponse(
                "log in, or send Authorization: Bearer\n", 401, {"WWW-Authenticate": "Bearer"}
            )
        else:
            answer = RedirectResponse(f"{self.root}/login", 303)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        answer.headers.setdefault("Cache-Control", "no-store")
        return answer

    def may_pass(self, request: Request) -> bool:
        """Whether this request needs no login, or has one."""
        return request.url.path.startswith(OPEN) or self.role_of(request) is not None

    def role_of(self, request: Request) -> Role | None:
        """Return what this request may do; None without a login. Without tokens, everything."""
        if self.token is None:
            return "operator"
        given = bearer_of(request)
        if given is not None:
            return self._role(given, address_of(request))
        return self.role_of_session(request)

    def role_of_session(self, request: Request) -> Role | None:
        """Return what a login in this browser may do; a token in a header counts for nothing."""
        if self.token is None:
            return "operator"
        sid = request.cookies.get(self.session_cookie, "")
        if self.sessions.get(sid, 0.0) <= self.clock():
            return None
        return "viewer" if sid in self.viewers else "operator"

    def user_of(self, request: Request) -> str | None:
        """Return the name that the proxy in front sends; None without one."""
        return request.headers.get(self.user_header) if self.user_header else None

    def log_in(self, given: str, address: str = "") -> str | None:
        """Return a new session for a right token; None for a wrong one, counted by address."""
        role = self._role(given, address)
        if role is None:
            return None
        now = self.clock()
        self.sessions = {sid: end for sid, end in self.sessions.items() if end > now}
        while len(self.sessions) >= MAX_SESSIONS:
            self.sessions.pop(next(iter(self.sessions)))
        sid = secrets.token_urlsafe(32)
        self.sessions[sid] = now + self.session_seconds
        self.viewers &= self.sessions.keys()
        if role == "viewer":
            self.viewers.add(sid)
        return sid

    def log_out(self, request: Request) -> None:
        """End the request's session."""
        self.sessions.pop(request.cookies.get(self.session_cookie, ""), None)

    def too_often(self, address: str) -> bool:
        """Whether so many wrong tokens came from an address lately that another is not judged."""
        return len(self._recent(address)) >= MAX_FAILURES

    def _recent(self, address: str) -> tuple[float, ...]:
        begin = self.clock() - FAILURE_WINDOW_SECONDS
        return tuple(at for at in self.failures.get(address, ()) if at > begin)

    def _role(self, given: str, address: str) -> Role | None:
        """Compare in constant time, whatever the lengths; count the wrong ones by address.

        A right token always passes: behind a proxy all visitors have the proxy's address, and one
        who guesses tokens must not lock the others out.
        """
        given_digest, operator_digest, viewer_digest = (
            hmac.digest(self.key, text.encode(), hashlib.sha256)
            for text in (given, str(self.token), str(self.viewer_token))
        )
        viewer = hmac.compare_digest(given_digest, viewer_digest) and self.viewer_token is not None
        if hmac.compare_digest(given_digest, operator_digest):
            return "operator"
        if viewer:
            return "viewer"
        recent = self._recent(address)
        self.failures.pop(address, None)  # the address with the oldest attempt stays first
        self.failures[address] = (*recent, self.clock())[-MAX_FAILURES:]
        while len(self.failures) > MAX_ADDRESSES:
            self.failures.pop(next(iter(self.failures)), None)
        return None

    # -- cookies --------------------------------------------------------------------------------

    @property
    def session_cookie(self) -> str:
        """The name of a session's cookie: each project among several has its own."""
        if not self.root:
            return SESSION
        return f"{SESSION}_{hashlib.sha256(self.root.encode()).hexdigest()[:MAX_DIGEST_CHARS]}"

    def begin_session(self, answer: Response, sid: str) -> None:
        """Set the cookie of a session; the page with all projects reads it too."""
        self.set_cookie(answer, self.session_cookie, sid, path="/")

    def end_session(self, answer: Response) -> None:
        """Take the cookie of a session away."""
        answer.delete_cookie(self.session_cookie)

    # -- CSRF: a random cookie, and its HMAC in the form ----------------------------------------

    def form_token(self, nonce: str) -> str:
        """Return what a form must carry in addition to the cookie `nonce`."""
        return hmac.new(self.key, f"csrf {nonce}".encode(), hashlib.sha256).hexdigest()

    def is_own_form(self, request: Request, given: str) -> bool:
        """Whether a POST comes from a page of ours."""
        nonce = request.cookies.get(CSRF, "")
        return bool(nonce) and hmac.compare_digest(given.encode(), self.form_token(nonce).encode())

    def set_cookie(
        self,
        answer: Response,
        name: str,
        value: str,
        seconds: float | None = None,
        path: str | None = None,
    ) -> None:
        """Set a cookie that scripts, other sites and other projects' pages never see.

        It lasts for a session or some seconds; `path` is the project's own.
        """
        answer.set_cookie(
            name,
            value,
            max_age=int(self.session_seconds if seconds is None else seconds),
            path=f"{self.root}/" if path is None else path,
            httponly=True,
            samesite="strict",
            secure=self.https,
        )


def guard_of(settings: Settings, root: str = "") -> Guard:
    """Return the configured access control; other machines need a token."""
    serve = settings.serve
    token, viewer = secret_text(serve.token), secret_text(serve.viewer_token)
    for name, given in (("TOKEN", token), ("VIEWER_TOKEN", viewer)):
        if given is not None and len(given) < MIN_TOKEN_CHARS:
            raise ConfigError(
                found=f"RINGFENCE_SERVE_{name} has {len(given)} characters",
                needed=f"{MIN_TOKEN_CHARS} or more",
                next_step=f'export RINGFENCE_SERVE_{name}="$(openssl rand -hex 24)"',
            )
    if viewer is not None and viewer == (token or viewer):
        raise ConfigError(
            found="RINGFENCE_SERVE_VIEWER_TOKEN without another RINGFENCE_SERVE_TOKEN beside it",
            needed="two different tokens: operators log in with the one, viewers with the other",
            next_step='export RINGFENCE_SERVE_TOKEN="$(openssl rand -hex 24)"',
        )
    if token is None and not is_loopback(serve.host):
        raise ConfigError(
            found=f"[serve] host {serve.host} can be reached from other machines",
            needed=f"a token that people log in to project {settings.project!r} with",
            next_step='export RINGFENCE_SERVE_TOKEN="$(openssl rand -hex 24)"',
        )
    hosts = {"localhost", "127.0.0.1", "::1", serve.host.lower(), *map(str.lower, serve.hosts)}
    return Guard(
        token,
        frozenset(hosts),
        serve.session_hours * 3600,
        serve.https,
        viewer_token=viewer,
        user_header=serve.user_header or None,
        root=root,
    )


def remembered_name(request: Request) -> str:
    """Return the name under which this browser marked a node last; empty before the first."""
    return unquote(request.cookies.get(NAME, ""))[:MAX_NAME_CHARS]
