"""Who may see the dashboard: policy, host names, login, forms of others, guessing, expiry."""

import time

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.dashboard import api, page_routes, routes
from ringfence.jobs.dashboard.security import MAX_ADDRESSES, MAX_FAILURES, Guard, guard_of


@pytest.fixture
def token(locked):
    """The right token, on a dashboard that nobody has guessed at lately."""
    locked.dashboard.guard.failures.clear()
    return locked.dashboard.guard.token


def test_pages_forbid_inline_scripts_styles_and_foreign_frames(site):
    policy = site.ask("/").headers["Content-Security-Policy"]
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["script-src"] == "'self'"
    assert parts["default-src"] == "'none'"
    assert parts["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy
    assert b"<script>" not in site.ask("/coverage").body


def test_a_request_under_another_name_is_refused(site):
    assert site.ask("/", Host="evil.example").status == 400
    assert site.ask("/", Host=f"localhost:{site.port}").status == 200


def test_without_a_login_there_is_nothing_to_see(locked, token):
    answer = locked.ask("/")
    assert (answer.status, answer.headers["Location"]) == (303, "/login")
    for path in ("/api/v1/status", "/csv/runs", "/metrics"):
        assert locked.ask(path).status == 401
    assert locked.ask("/healthz").status == 200
    right = {"Authorization": f"Bearer {token}"}
    assert locked.ask("/api/v1/status", **right).status == 200
    assert locked.ask("/api/v1/status", Authorization="Bearer wrong").status == 401


def test_a_person_logs_in_looks_and_logs_out(locked, token, visiting):
    with visiting() as seen:
        page = seen.page
        page.goto(locked.url + "/coverage")
        assert page.url.endswith("/login")
        page.fill("input[name=token]", "not the token")
        page.click("button")
        page.wait_for_selector("[role=alert]")
        assert "not the token" in page.inner_text("[role=alert]")
        page.fill("input[name=token]", token)
        page.click("button")
        page.wait_for_url(locked.url + "/")
        assert page.inner_text("h1") == "Today"
        cookies = {one["name"]: one for one in page.context.cookies()}
        session = cookies["ringfence_session"]
        assert session["httpOnly"]
        assert session["sameSite"] == "Strict"
        assert session["expires"] > time.time()
        page.click("text=Log out")
        page.wait_for_url("**/login")
        assert page.url.endswith("/login")
        page.goto(locked.url + "/runs")
        assert page.url.endswith("/login")


def posts():
    """Every address that takes a POST."""
    every = [*page_routes.router.routes, *routes.router.routes, *api.router.routes]
    return sorted(one.path for one in every if one.methods - {"GET", "HEAD"})


def forgeries(guard):
    """Cookie and form token as another site, or a guess, would send them."""
    other = Guard(guard.token, guard.hosts, guard.session_seconds, guard.https)
    return {
        "nothing": ("", {}),
        "no cookie": ("", {"csrf": guard.form_token("abc")}),
        "no token": ("ringfence_csrf=abc", {}),
        "a guess": ("ringfence_csrf=abc", {"csrf": "abc"}),
        "a token for another cookie": ("ringfence_csrf=abc", {"csrf": guard.form_token("xyz")}),
        "a token of another process": ("ringfence_csrf=abc", {"csrf": other.form_token("abc")}),
    }


def attempt(locked, path, cookie, form):
    """Post with a session and the right login token; return the status and whether it acted."""
    guard = locked.dashboard.guard
    sid = guard.log_in(guard.token)
    before, entries = dict(guard.sessions), locked.dashboard.queries.chain_length()
    cookies = "; ".join(filter(None, (f"ringfence_session={sid}", cookie)))
    fields = {"token": guard.token, "key": "s:account 2-7", "who": "x", "action": "claim"}
    answer = locked.post(path, cookies, **fields, **form)
    changed = guard.sessions != before or "ringfence_session" in str(answer.headers)
    changed |= locked.dashboard.queries.chain_length() != entries
    guard.sessions.pop(sid, None)
    return answer.status, changed


def test_no_post_does_anything_for_a_form_from_elsewhere(locked, token, monkeypatch):
    guard = locked.dashboard.guard
    addresses = posts()
    assert addresses == ["/login", "/logout", "/marks"]
    for path in addresses:
        for name, (cookie, form) in forgeries(guard).items():
            assert attempt(locked, path, cookie, form) == (403, False), (path, name)
        own = {"csrf": guard.form_token("abc")}
        assert attempt(locked, path, "ringfence_csrf=abc", own) == (303, True), path
    assert not guard.failures
    # the negative control: without the check each forgery would have worked
    monkeypatch.setattr(Guard, "is_own_form", lambda *_: True)
    for path in addresses:
        for cookie, form in forgeries(guard).values():
            assert attempt(locked, path, cookie, form) == (303, True)


def test_guessing_is_answered_with_429_and_never_keeps_the_right_token_out(locked, token):
    guard = locked.dashboard.guard
    own = {"cookie": "ringfence_csrf=abc", "csrf": guard.form_token("abc")}
    answers = [locked.post("/login", token=f"guess {i}", **own).status for i in range(6)]
    assert answers == [401] * 5 + [429]
    assert guard.too_often("127.0.0.1")
    assert locked.post("/login", token=token, **own).status == 303
    right = {"Authorization": f"Bearer {token}"}
    assert locked.ask("/api/v1/status", **right).status == 200
    assert locked.post("/login", token="guess", **own).status == 429  # the right one clears nothing
    clock, guard.clock = guard.clock, lambda: time.monotonic() + 61
    assert locked.post("/login", token="guess", **own).status == 401
    guard.clock = clock


@pytest.mark.parametrize("path", ["/api/v1/status", "/metrics", "/"])
def test_guesses_in_a_header_are_limited_like_those_of_the_form(locked, token, path):
    guard = locked.dashboard.guard
    guard.failures.clear()
    guesses = [locked.ask(path, Authorization=f"Bearer guess {i}") for i in range(6)]
    wrong = 303 if path == "/" else 401
    assert [answer.status for answer in guesses] == [wrong] * 5 + [429]
    assert guesses[-1].getheader("Retry-After") == "60"
    assert locked.ask(path, Authorization=f"Bearer {token}").status == 200
    assert locked.ask(path).status == wrong  # without a token nothing is guessed
    own = {"cookie": "ringfence_csrf=abc", "csrf": guard.form_token("abc")}
    assert locked.post("/login", token="guess", **own).status == 429  # one count for both ways
    guard.failures.clear()


def test_wrong_tokens_are_counted_by_address_and_not_for_ever():
    now = [0.0]
    guard = Guard("t" * 16, frozenset(), 60.0, https=False, clock=lambda: now[0])
    for _ in range(1_000):
        assert guard.log_in("wrong", "192.0.2.1") is None
    assert guard.too_often("192.0.2.1")
    assert not guard.too_often("192.0.2.2")
    assert guard.log_in("t" * 16, "192.0.2.1")
    assert len(guard.failures["192.0.2.1"]) == MAX_FAILURES
    now[0] = 61.0
    assert not guard.too_often("192.0.2.1")
    for i in range(MAX_ADDRESSES + 10):
        guard.log_in("wrong", f"address {i}")
    assert len(guard.failures) == MAX_ADDRESSES


def test_a_session_ends_after_its_hours(locked, token):
    guard = locked.dashboard.guard
    sid = guard.log_in(token)
    assert locked.ask("/", Cookie=f"ringfence_session={sid}").status == 200
    clock, guard.clock = guard.clock, lambda: time.monotonic() + 13 * 3600
    assert locked.ask("/", Cookie=f"ringfence_session={sid}").status == 303
    guard.clock = clock


def test_other_machines_need_a_token_and_a_token_needs_some_length(settings_in, tmp_path):
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        guard_of(settings_in(tmp_path, serve={"host": "0.0.0.0"}))
    with pytest.raises(ConfigError, match="16 or more"):
        guard_of(settings_in(tmp_path, serve={"token": "short"}))


@pytest.mark.parametrize(
    "path", ["/node?key=%00", "/worklist?class=a%00", "/api/v1/nodes/%00", "/models/a%00", "/?%00"]
)
def test_an_address_with_a_character_that_no_database_takes_is_refused(site, path):
    answer = site.ask(path)
    assert answer.status == 400
    assert b"NUL" in answer.body
    assert answer.headers["Content-Security-Policy"]  # as on every other answer


@pytest.mark.parametrize("path", ["/node", "/why"])
def test_a_key_that_is_too_long_is_said_to_be(site, path):
    answer = site.ask(f"{path}?key={'x' * 10_000}")
    assert answer.status == 400
    assert b"key: string should have at most 512 characters" in answer.body
    assert site.ask("/runs/compare?a=x&b=1").status == 400
    assert site.ask("/runs/x").status == 404
