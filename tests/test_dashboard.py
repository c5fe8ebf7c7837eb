"""The dashboard in a real Chromium, and its API: pages, hostile names, login, other hosts."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
import uvicorn

from ringfence.connector.errors import ConfigError
from ringfence.connector.store import open_store
from ringfence.jobs.config import load_values
from ringfence.jobs.sample_store import Plan, fill_store
from ringfence.jobs.shown import TABLES
from ringfence.jobs.web.app import create_app
from ringfence.jobs.web.context import Dashboard
from ringfence.jobs.web.security import guard_of

TOKEN = "correct horse battery"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = (
    "<script>window.hit=1</script>",
    "\"><img src=x onerror='window.hit=1'>",
    "</script><svg onload=window.hit=1>",
    "javascript:window.hit=1 {{7*7}} ${7*7}",
)
PAGES = ("/", "/coverage", "/classes", "/thresholds", "/drift", "/runs", "/runs/2",
         "/runs/compare?a=1&b=3", "/node", "/trail")  # fmt: skip


def settings_at(folder, project="payments", **sections):
    values = {
        "project": project,
        "neo4j": {"uri": "bolt://127.0.0.1:1"},
        "graph": {
            "label": "Account",
            "key": "id",
            "features": "features",
            "class_property": "kind",
        },
        "audit": {"groups": ["region"]},
    } | sections
    environment = {"RINGFENCE_NEO4J_PASSWORD": "none"}
    return load_values(values, folder / "ringfence.toml", environment)


@dataclass
class Site:
    """A running dashboard."""

    port: int
    dashboard: Dashboard
    plan: Plan

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, method="GET", body=None, **headers):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        answer.body = answer.read()
        connection.close()
        return answer

    def post(self, path, cookie="", **form):
        kind = {"Content_Type": "application/x-www-form-urlencoded", "Cookie": cookie}
        return self.ask(path, "POST", urlencode(form), **kind)


@contextlib.contextmanager
def open_site(settings, store, plan):
    dashboard = Dashboard(settings, store, guard_of(settings))
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        config = uvicorn.Config(create_app(dashboard), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield Site(door.getsockname()[1], dashboard, plan)
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A project whose class, group and key names are all attacks."""
    folder = tmp_path_factory.mktemp("site")
    settings = settings_at(folder, project=f"p {HOSTILE[0]}")
    plan = Plan(runs=4, per_run=60, classes=HOSTILE, regions=HOSTILE, prefix=HOSTILE[1])
    store = open_store(settings.audit.url)
    fill_store(store, settings, plan)
    with open_site(settings, store, plan) as opened:
        yield opened
    store.close()


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: apt-get install chromium")
    with sync.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


@dataclass
class Visit:
    """What a browser saw of one page."""

    page: object
    requests: list
    problems: list

    def open(self, url):
        self.page.goto(url)
        self.page.wait_for_function(
            "[...document.querySelectorAll('[data-figure]')].every(f => f.dataset.drawn)",
            timeout=90_000,
        )


@contextlib.contextmanager
def visiting(browser, **options):
    page = browser.new_page(**options)
    seen = Visit(page, [], [])
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("pageerror", lambda error: seen.problems.append(str(error)))
    page.on(
        "console",
        lambda line: seen.problems.append(line.text) if line.type == "error" else None,
    )
    page.on("dialog", lambda dialog: seen.problems.append("a dialog"))
    yield seen
    page.close()


def node_path(site):
    return "/node?key=" + quote(f"{site.plan.prefix}2-7")


def test_every_page_opens_runs_no_hostile_name_and_asks_no_other_host(site, browser):
    with visiting(browser) as seen:
        for path in (*PAGES, node_path(site), "/node?key=" + quote(HOSTILE[2]), "/nowhere"):
            seen.problems.clear()
            seen.open(site.url + path)
            assert seen.page.evaluate("window.hit") is None, path
            assert seen.page.locator("h1").count() == 1, path
            expected = [p for p in seen.problems if "404" not in p or path != "/nowhere"]
            assert expected == [], path
        assert all(url.startswith((site.url, "data:")) for url in seen.requests)
        # the names are there, as text
        seen.open(site.url + "/classes")
        assert HOSTILE[0] in seen.page.inner_text("main")
        assert seen.page.locator(".chart svg").count() > 0
        seen.open(site.url + node_path(site))
        assert HOSTILE[1] in seen.page.inner_text("h1")


def test_a_page_that_did_not_escape_would_be_noticed(site, browser):
    """The negative control of the matrix: the same names in a page without escaping."""
    with visiting(browser) as seen:
        seen.page.set_content(f"<h1>{HOSTILE[0]}</h1>")
        assert seen.page.evaluate("window.hit") == 1


def test_axe_finds_nothing_serious_and_the_keyboard_reaches_the_content(site, browser):
    from axe_playwright_python.sync_playwright import Axe

    for scheme in ("light", "dark"):
        with visiting(browser, color_scheme=scheme) as seen:
            for path in ("/", "/coverage", "/classes", "/drift", node_path(site), "/trail"):
                seen.open(site.url + path)
                found = Axe().run(seen.page).response["violations"]
                grave = [
                    (one["id"], one["nodes"][0]["html"][:200])
                    for one in found
                    if one["impact"] in ("serious", "critical")
                ]
                assert grave == [], (scheme, path)
    with visiting(browser) as seen:
        seen.open(site.url + "/")
        seen.page.keyboard.press("Tab")
        assert seen.page.evaluate("document.activeElement.getAttribute('href')") == "#main"


def test_a_phone_shows_pages_without_sideways_scrolling_in_the_dark(site, browser):
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    with visiting(browser, **phone) as seen:
        for path in ("/", "/coverage", "/runs", node_path(site)):
            seen.open(site.url + path)
            wide = seen.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, path
        background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(20, 23, 28)"
        assert len(seen.page.screenshot()) > 5_000


def test_every_table_downloads_as_csv_and_formulas_are_tamed(site):
    for name in TABLES:
        answer = site.ask(f"/csv/{name}")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/csv")
        assert "attachment" in answer.headers["Content-Disposition"]
    from ringfence.jobs.shown import Column, Shown, as_csv

    text = as_csv(Shown("x", "x", (Column("a", "a"),), [{"a": "=1+1"}, {"a": "plain"}]))
    assert text.splitlines() == ["a", "'=1+1", "plain"]


def test_pages_forbid_inline_scripts_and_foreign_frames(site):
    policy = site.ask("/").headers["Content-Security-Policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts == "script-src 'self'"
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert b"<script>" not in site.ask("/coverage").body


def test_a_request_under_another_name_is_refused(site):
    assert site.ask("/", Host="evil.example").status == 400
    assert site.ask("/", Host=f"localhost:{site.port}").status == 200


def test_metrics_and_health_answer(site):
    text = site.ask("/metrics").body.decode()
    assert "ringfence_coverage_ratio{" in text
    assert "ringfence_alarm{" in text
    assert site.ask("/healthz").body == b"ok\n"
    assert site.ask("/readyz").status == 200


def test_the_chain_is_verified_and_an_edit_is_shown(site):
    from sqlalchemy import text

    assert "fit: nothing was changed" in site.ask("/trail").body.decode()
    lines = site.ask("/trail/export").body.decode().splitlines()
    assert json.loads(lines[0])["n"] == 1
    with site.dashboard.store.transaction() as connection:
        connection.execute(text("DROP TRIGGER audit_no_update"))
        connection.execute(text("UPDATE audit SET body = body || ' ' WHERE n = 3"))
    site.dashboard.verified = None
    assert "BROKEN: chain entry 3" in site.ask("/trail").body.decode()
    with site.dashboard.store.transaction() as connection:
        connection.execute(text("UPDATE audit SET body = rtrim(body) WHERE n = 3"))
    site.dashboard.verified = None


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """A dashboard behind a token."""
    folder = tmp_path_factory.mktemp("locked")
    settings = settings_at(folder, serve={"token": TOKEN})
    store = open_store(settings.audit.url)
    plan = Plan(runs=2, per_run=20)
    fill_store(store, settings, plan)
    with open_site(settings, store, plan) as opened:
        yield opened
    store.close()


def test_without_a_login_there_is_nothing_to_see(locked):
    answer = locked.ask("/")
    assert (answer.status, answer.headers["Location"]) == (303, "/login")
    for path in ("/api/v1/status", "/csv/runs", "/metrics"):
        assert locked.ask(path).status == 401
    assert locked.ask("/healthz").status == 200
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert locked.ask("/api/v1/status", **right).status == 200
    assert locked.ask("/api/v1/status", Authorization="Bearer wrong").status == 401
    locked.dashboard.guard.failures.clear()


def test_a_person_logs_in_looks_and_logs_out(locked, browser):
    with visiting(browser) as seen:
        page = seen.page
        page.goto(locked.url + "/coverage")
        assert page.url.endswith("/login")
        page.fill("input[name=token]", "not the token")
        page.click("button")
        assert "not the token" in page.inner_text("[role=alert]")
        page.fill("input[name=token]", TOKEN)
        page.click("button")
        assert page.inner_text("h1") == "Today"
        cookies = {one["name"]: one for one in page.context.cookies()}
        session = cookies["ringfence_session"]
        assert session["httpOnly"]
        assert session["sameSite"] == "Strict"
        assert session["expires"] > time.time()
        page.click("text=Log out")
        assert page.url.endswith("/login")
        page.goto(locked.url + "/runs")
        assert page.url.endswith("/login")
    locked.dashboard.guard.failures.clear()


def test_a_form_from_elsewhere_is_refused(locked):
    assert locked.post("/login", token=TOKEN).status == 403
    assert locked.post("/login", token=TOKEN, csrf="x", cookie="ringfence_csrf=abc").status == 403
    assert locked.post("/logout", csrf="x", cookie="ringfence_csrf=abc").status in (303, 403)


def test_guessing_is_slowed_down_and_ends_by_itself(locked):
    guard = locked.dashboard.guard
    guard.failures.clear()
    own = {"cookie": "ringfence_csrf=abc", "csrf": guard.form_token("abc")}
    answers = [locked.post("/login", token=f"guess {i}", **own).status for i in range(6)]
    assert answers == [401] * 5 + [429]
    assert locked.post("/login", token=TOKEN, **own).status == 429
    clock, guard.clock = guard.clock, lambda: time.monotonic() + 61
    assert locked.post("/login", token=TOKEN, **own).status == 303
    guard.clock = clock


def test_a_session_ends_after_its_hours(locked):
    guard = locked.dashboard.guard
    guard.failures.clear()
    sid = guard.log_in(TOKEN)
    assert locked.ask("/", Cookie=f"ringfence_session={sid}").status == 200
    clock, guard.clock = guard.clock, lambda: time.monotonic() + 13 * 3600
    assert locked.ask("/", Cookie=f"ringfence_session={sid}").status == 303
    guard.clock = clock


def test_other_machines_need_a_token_and_a_token_needs_some_length(tmp_path):
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        guard_of(settings_at(tmp_path, serve={"host": "0.0.0.0"}))
    with pytest.raises(ConfigError, match="16 or more"):
        guard_of(settings_at(tmp_path, serve={"token": "short"}))


def test_the_api_keeps_what_its_description_says(site):
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given
    from hypothesis import settings as effort

    schema = schemathesis.openapi.from_url(f"{site.url}/api/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 7
    for operation in operations:

        @given(case=operation.as_strategy())
        @effort(max_examples=12, deadline=None, database=None, derandomize=True,
                suppress_health_check=list(HealthCheck))  # fmt: skip
        def keeps(case):
            case.call_and_validate()

        keeps()


def test_the_command_says_where_it_serves_and_ends_by_ctrl_c(site):
    folder = site.dashboard.settings.engine.folder.parent
    (folder / "ringfence.toml").write_text(
        f"project = {json.dumps(site.dashboard.settings.project)}\n[graph]\nlabel = 'A'\n"
        "key = 'id'\nfeatures = 'f'\nclass_property = 'kind'\n"
    )
    command = [sys.executable, "-c", "from ringfence.jobs.cli import main; main()"]
    with subprocess.Popen(
        [*command, "serve", "--port", "0", "--json"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            lines = [process.stdout.readline() for _ in range(3)]
            url = json.loads("".join(lines))["url"]
            port = int(url.rstrip("/").rpartition(":")[2])
            assert Site(port, site.dashboard, site.plan).ask("/healthz").status == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, process.stderr.read()
        finally:
            process.kill()


def test_serving_needs_no_torch():
    script = (
        "import sys\n"
        "import ringfence.jobs.serving, ringfence.jobs.web.app, ringfence.jobs.report.writing\n"
        "import ringfence.jobs.report.page, ringfence.jobs.explaining\n"
        "assert not {'torch', 'torch_geometric'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_report_is_one_small_file_that_loads_nothing(site, browser, tmp_path):
    from pyarrow import parquet

    from ringfence.jobs.report.writing import run_report

    done = run_report(site.dashboard.settings, tmp_path, ("html", "csv", "json", "parquet"))
    page = tmp_path / "report.html"
    assert page.stat().st_size < 300_000
    with visiting(browser) as seen:
        seen.page.goto(page.as_uri())
        assert seen.requests == [page.as_uri()]
        assert seen.problems == []
        assert seen.page.evaluate("window.hit") is None
        assert seen.page.locator("svg").count() >= 6
        shown = seen.page.inner_text("body")
        pdf = seen.page.pdf(path=tmp_path / "report.pdf")
        assert pdf.startswith(b"%PDF")
    body = json.loads((tmp_path / "report.json").read_text())
    assert " ".join(body["verdict"]["words"].split()[1:4]) in shown
    rows = parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    assert [row["seq"] for row in rows] == [row["seq"] for row in body["tables"]["runs"]]
    assert len(Path(tmp_path / "classes.csv").read_text().splitlines()) == 5
    assert len(done.files) == 2 + 2 * len(TABLES)
