"""A running dashboard on a made-up audit store, and a real Chromium to look at it."""

import contextlib
import shutil
import socket
import threading
import time
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import quote, urlencode

import pytest
import uvicorn

from ringfence.connector.store.engine import open_store
from ringfence.jobs.config.load import load_values
from ringfence.jobs.dashboard.app import create_app
from ringfence.jobs.dashboard.connections import request_limits
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.security import guard_of
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.patience import PATIENCE_SECONDS

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
HOSTILE_LISTS = [
    {"name": "investigate", "class": HOSTILE[0], "may_be_wrong": 0.2},
    {"name": "clear", "not": HOSTILE[0], "may_be_wrong": 0.05, "per": "stream"},
]
TOKEN = "correct horse battery"


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
    state: str = ""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self):
        """Key of a node that has a set."""
        return f"{self.plan.prefix}2-7"

    @property
    def node_path(self):
        return "/node?key=" + quote(self.key)

    def ask(self, path, method="GET", body=None, **headers):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
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
def open_site(settings, plan, fill=None):
    """Serve a store that is filled by a plan, or by a function of the store and the settings."""
    store = open_store(settings.audit.url)
    if fill is None:
        fill_store(store, settings, plan)
    else:
        fill(store, settings)
    dashboard = Dashboard(settings, store, guard_of(settings))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            create_app(dashboard),
            log_level="error",
            timeout_graceful_shutdown=5,
            **request_limits(),
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield Site(listener.getsockname()[1], dashboard, plan)
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
    store.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A project with lists, whose class, group and key names are all attacks."""
    settings = settings_at(
        tmp_path_factory.mktemp("site"), project=f"p {HOSTILE[0]}", lists=HOSTILE_LISTS
    )
    plan = Plan(runs=4, per_run=60, classes=HOSTILE, regions=HOSTILE, prefix=HOSTILE[1])
    with open_site(settings, plan) as opened:
        yield opened


@pytest.fixture(scope="session")
def locked(tmp_path_factory):
    """A dashboard behind a token."""
    settings = settings_at(tmp_path_factory.mktemp("locked"), serve={"token": TOKEN})
    with open_site(settings, Plan(runs=2, per_run=20)) as opened:
        yield opened


@pytest.fixture
def settings_in():
    return settings_at


@pytest.fixture(scope="session")
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
    """What a browser saw of the pages it opened."""

    page: object
    requests: list
    problems: list

    def open(self, url):
        self.page.goto(url)
        waiting = "[data-figure]:not([data-drawn])"
        self.page.wait_for_selector(waiting, state="detached")


@pytest.fixture
def visiting(browser):
    """Open a page that notes every request, error and dialog."""

    @contextlib.contextmanager
    def visit(**options):
        page = browser.new_page(**options)
        page.set_default_timeout(1000 * PATIENCE_SECONDS)
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

    return visit
