"""Several projects under one server: addresses, logins, cookies and the page with all of them."""

import contextlib
import re
import socket
import threading
import time
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
import uvicorn

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.config.sources.projects import require_addresses
from ringfence.jobs.dashboard.address import root_of
from ringfence.jobs.dashboard.app import create_app
from ringfence.jobs.dashboard.connections import request_limits
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.html import environment
from ringfence.jobs.dashboard.projects import LOGIN, NO_ANSWER, ProjectsApp
from ringfence.jobs.dashboard.security import guard_of
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.dashboard.conftest import HOSTILE, Site, settings_at
from tests.patience import PATIENCE_SECONDS

TOKENS = {"cards": "token of the cards", "loans / ä": "token of the loans"}
LOANS = root_of("loans / ä")
ADDRESS = re.compile(r"^/p/[^/]+/")
PAGES_REACHED = (
    "/", "/worklist", "/node", "/why", "/runs", "/runs/compare", "/models/sample-1",
    "/trail/export", "/csv/runs", "/static/charts.js",
)  # fmt: skip
PLAN = Plan(runs=3, per_run=40, days_apart=1.0)


@contextlib.contextmanager
def serving(app):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, log_level="error", timeout_graceful_shutdown=5, **request_limits()
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)


@contextlib.contextmanager
def open_projects(folder, tokens):
    """Serve made-up projects, each in a store of its own, with a token or without."""
    dashboards = {}
    for place, (project, token) in enumerate(tokens.items()):
        serve = {"serve": {"token": token}} if token else {}
        settings = settings_at(folder / str(place), project, **serve)
        (folder / str(place)).mkdir()
        store = open_store(settings.audit.url)
        fill_store(store, settings, PLAN)
        guard = guard_of(settings, root_of(project))
        dashboards[project] = Dashboard(settings, store, guard)
    with serving(ProjectsApp(list(dashboards.values()))) as port:
        yield {name: Site(port, dashboard, PLAN) for name, dashboard in dashboards.items()}
    for dashboard in dashboards.values():
        dashboard.close()
        dashboard.store.close()


@pytest.fixture(scope="module")
def locked_projects(tmp_path_factory):
    """Two projects, each behind a token."""
    with open_projects(tmp_path_factory.mktemp("locked"), TOKENS) as sites:
        yield sites


@pytest.fixture(scope="module")
def open_sites(tmp_path_factory):
    """Two projects without a token; the name of one is an attack."""
    names = {"cards": None, f"{HOSTILE[0]}?#é": None}
    with open_projects(tmp_path_factory.mktemp("open"), names) as sites:
        yield sites


@pytest.fixture
def cards(locked_projects):
    for site in locked_projects.values():
        site.dashboard.guard.failures.clear()
        site.dashboard.guard.sessions.clear()
    return locked_projects["cards"]


def log_in(seen, site):
    page = seen.page
    page.goto(f"{site.url}{site.dashboard.root}/runs")
    page.fill("input[name=token]", site.dashboard.guard.token)
    page.click("button")
    page.wait_for_url(f"{site.url}{site.dashboard.root}/")


def test_a_login_opens_its_project_and_no_other(locked_projects, cards, visiting):
    loans = locked_projects["loans / ä"]
    with visiting() as seen:
        log_in(seen, cards)
        assert seen.page.inner_text("h1") == "Today"
        seen.page.goto(f"{cards.url}{LOANS}/coverage")
        assert seen.page.url == f"{cards.url}{LOANS}/login"
        assert "loans / ä" in seen.page.inner_text("form")
        assert LOGIN in states_of(seen, cards)["loans / ä"]
        log_in(seen, loans)
        assert LOGIN not in "".join(states_of(seen, cards).values())
        seen.page.goto(f"{cards.url}/p/cards/")
        seen.page.click("text=Log out")
        seen.page.wait_for_url(f"{cards.url}/p/cards/login")
        seen.page.goto(f"{cards.url}/p/cards/runs")
        assert seen.page.url == f"{cards.url}/p/cards/login"
        seen.page.goto(f"{cards.url}{LOANS}/runs")  # the other login goes on
        assert seen.page.inner_text("h1") == "Runs"


def states_of(seen, site):
    """What the page with all projects says of each."""
    seen.page.goto(f"{site.url}/")
    cards = seen.page.locator("main section").all()
    return {card.locator("h2").inner_text(): card.inner_text() for card in cards}


def test_no_credential_of_a_project_passes_at_another(locked_projects, cards):
    loans = locked_projects["loans / ä"].dashboard.guard
    sid = cards.dashboard.guard.log_in(cards.dashboard.guard.token)
    for name in (cards.dashboard.guard.session_cookie, loans.session_cookie, "ringfence_session"):
        cookie = f"{name}={sid}"
        assert cards.ask(f"{LOANS}/runs", Cookie=cookie).status == 303, name
        assert cards.ask(f"{LOANS}/api/v1/status", Cookie=cookie).status == 401, name
    bearer = {"Authorization": f"Bearer {TOKENS['cards']}"}
    assert cards.ask(f"{LOANS}/metrics", **bearer).status == 401
    form = {"csrf": cards.dashboard.guard.form_token("abc"), "token": loans.token}
    assert cards.post(f"{LOANS}/login", "ringfence_csrf=abc", **form).status == 403
    # the control: at its own project each of them passes
    cookie = f"{cards.dashboard.guard.session_cookie}={sid}"
    assert cards.ask("/p/cards/runs", Cookie=cookie).status == 200
    assert cards.ask("/p/cards/metrics", **bearer).status == 200
    form["token"] = TOKENS["cards"]
    assert cards.post("/p/cards/login", "ringfence_csrf=abc", **form).status == 303


def test_cookies_and_redirects_stay_with_their_project(cards, visiting):
    with visiting() as seen:
        log_in(seen, cards)
        paths = {cookie["name"]: cookie["path"] for cookie in seen.page.context.cookies()}
        session = cards.dashboard.guard.session_cookie
        # the page with all projects reads this one; its name is the project's own
        assert paths.pop(session) == "/"
        assert set(paths) == {"ringfence_csrf", "ringfence_visits"}
        assert set(paths.values()) == {"/p/cards/"}
    answer = cards.ask("/p/cards")
    assert (answer.status, answer.headers["Location"]) == (303, "/p/cards/")
    assert cards.ask(LOANS).headers["Location"] == f"{LOANS}/"
    assert cards.ask(f"{LOANS}/runs").headers["Location"] == f"{LOANS}/login"
    assert cards.ask("/p/nothing").status == 404
    assert cards.ask("/p/nothing/").status == 404
    assert cards.ask("/runs").status == 404
    assert cards.ask("/", Host="evil.example").status == 400
    assert "script-src 'self'" in cards.ask("/").headers["Content-Security-Policy"]


def test_a_mark_leads_back_to_a_page_of_its_project(cards):
    guard, queries = cards.dashboard.guard, cards.dashboard.queries
    cookie = f"ringfence_csrf=abc; {guard.session_cookie}={guard.log_in(guard.token)}"
    form = {"csrf": guard.form_token("abc"), "who": "Ann", "key": f"s:{cards.key}"}
    before = queries.chain_length()
    for back, wanted in (
        ("/worklist?class=mule", "/p/cards/worklist?class=mule"),
        (f"{LOANS}/worklist?class=mule", f"/p/cards/node?key=s%3A{cards.key.replace(' ', '+')}"),
    ):
        answer = cards.post("/p/cards/marks", cookie, action="note", note="x", back=back, **form)
        assert (answer.status, answer.headers["Location"]) == (303, wanted)
    assert queries.chain_length() == before + 2


class Links(HTMLParser):
    """Every address that a page names."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.addresses += [
            (given[name], given.get("rel"), given.get("method") == "post")
            for name in ("href", "src", "action", "formaction")
            if given.get(name) is not None
        ]


def crawl(site, root, most=2):
    """Open the pages that can be reached from a project's first; return what leads out of it.

    Of addresses that differ in numbers and queries alone, as orders of a table do, so `most`.
    """
    waiting, opened, outside = [f"{root}/"], {}, set()
    while waiting:
        path = waiting.pop()
        shape = re.sub(r"\d+", "N", path.partition("?")[0])
        if path in opened or sum(known == shape for known in opened.values()) >= most:
            continue
        opened[path] = shape
        answer = site.ask(path)
        if answer.status not in (200, 400):  # 400: a form that was sent empty
            outside.add((path, answer.status))
        if "html" not in answer.headers["Content-Type"]:
            continue
        links = Links()
        links.feed(answer.body.decode())
        for address, rel, is_post in links.addresses:
            target = urlsplit(urljoin(f"{site.url}{path}", address))
            if target.netloc != f"127.0.0.1:{site.port}":
                outside.add(address)
            elif target.path == "/" and rel == "up":
                continue  # the page with all projects
            elif not target.path.startswith(f"{root}/"):
                outside.add(address)
            elif not is_post:
                waiting.append(urldefrag(target._replace(scheme="", netloc="").geturl())[0])
    return opened, outside


def test_every_link_of_every_page_stays_under_its_path(open_sites):
    for site in open_sites.values():
        opened, outside = crawl(site, site.dashboard.root)
        assert outside == set()
        reached = {ADDRESS.sub("/", path).partition("?")[0] for path in opened}
        assert set(PAGES_REACHED) <= reached


def test_the_crawler_notices_a_link_without_the_path(open_sites, monkeypatch):
    """The negative control: a project at the addresses of old, mounted under a path."""
    site = open_sites["cards"]
    monkeypatch.setattr(site.dashboard.guard, "root", "")
    _, outside = crawl(site, "/p/cards")
    assert {"/runs", "/static/ringfence.css", "/favicon.ico"} <= outside


def test_no_template_names_an_address_without_the_path():
    sources = environment().loader
    for name in environment().list_templates():
        source, _, _ = sources.get_source(environment(), name)
        for address in re.findall(r'\b(?:href|src|action)="([^"]*)"', source):
            assert address.startswith(("{{ root }}", "#")) or address == "/", (name, address)
        assert source.count('href="/" rel="up"') == source.count('href="/"'), name


def test_pages_work_in_a_browser_under_their_path(open_sites, visiting):
    with visiting() as seen:
        for site in open_sites.values():
            root = f"{site.url}{site.dashboard.root}"
            for path in ("/", "/coverage", "/runs", "/trail", f"/node?key={site.key}", "/nowhere"):
                seen.problems.clear()
                seen.open(root + path)
                assert [p for p in seen.problems if "404" not in p or path != "/nowhere"] == []
                assert seen.page.evaluate("window.hit") is None
            asked = [url for url in seen.requests if not url.startswith(root)]
            assert asked == []
            seen.page.click("a[rel=up]")
            seen.page.wait_for_url(f"{site.url}/")
            seen.requests.clear()


def test_the_page_with_all_tells_each_state_and_leads_there(open_sites, visiting):
    with visiting() as seen:
        told = states_of(seen, open_sites["cards"])
        assert set(told) == set(open_sites)
        for text in told.values():
            assert "covered, 90 % promised" in text
            assert "waiting" in text
        links = seen.page.eval_on_selector_all("main section a", "all => all.map(a => a.href)")
        roots = [f"{site.url}{site.dashboard.root}/" for site in open_sites.values()]
        assert all(link.startswith(tuple(roots)) for link in links)
        assert all(any(link.startswith(root) for link in links) for root in roots)
        assert seen.page.evaluate("window.hit") is None
        assert seen.problems == []


def test_a_store_that_gives_no_answer_hides_no_other_project(tmp_path):
    with open_projects(tmp_path, {"cards": None, "loans": None}) as sites:
        site = sites["cards"]
        assert site.ask("/readyz").body == b"ready\n"
        with sites["loans"].dashboard.store.transaction() as connection:
            connection.exec_driver_sql("DROP TABLE coverage")
            connection.exec_driver_sql("UPDATE ringfence_version SET version_num = '0001'")
        body = site.ask("/").body.decode()
        assert body.count("promised</a>") == 1
        assert body.count(NO_ANSWER) == 1
        answer = site.ask("/readyz")
        assert answer.status == 503
        assert answer.body.startswith(b"loans: ")
        assert site.ask("/p/cards/readyz").status == 200
        assert site.ask("/p/loans/readyz").status == 503


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/p/cards/healthz", "/p/cards/readyz"])
def test_health_checks_answer_head_without_a_login(cards, path):
    answer = cards.ask(path, "HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert cards.ask(path).body


def test_metrics_and_api_are_each_projects_own(open_sites):
    for name, site in open_sites.items():
        root = site.dashboard.root
        assert site.ask(f"{root}/api/v1/status").body.decode().count(name.split("<")[0])
        assert b"ringfence_nodes_evaluated" in site.ask(f"{root}/metrics").body
    assert b'project="cards"' in open_sites["cards"].ask("/p/cards/metrics").body
    described = open_sites["cards"].ask("/p/cards/api/openapi.json").body
    assert b'"servers":[{"url":"/p/cards"}]' in described


def test_projects_in_one_store_show_what_is_theirs(tmp_path):
    """As `ringfence schedule` takes them: two names in the store of one folder."""
    cards, loans = settings_at(tmp_path, "cards"), settings_at(tmp_path, "loans")
    store = open_store(cards.audit.url)
    fill_store(store, cards, PLAN)
    dashboards = [
        Dashboard(each, store, guard_of(each, root_of(each.project))) for each in (cards, loans)
    ]
    with serving(ProjectsApp(dashboards)) as port:
        site = Site(port, dashboards[0], PLAN)
        assert b'"evaluated":120' in site.ask("/p/cards/api/v1/status").body
        assert b'"evaluated":0' in site.ask("/p/loans/api/v1/status").body
    store.close()


def test_two_files_about_one_project_are_refused(tmp_path):
    alike = [settings_at(tmp_path / "a", "cards"), settings_at(tmp_path / "b", "cards")]
    with pytest.raises(ConfigError, match="two of the files are about project 'cards'"):
        require_addresses(alike)
    with pytest.raises(ConfigError, match=r"project '\.\.' among several"):
        require_addresses([settings_at(tmp_path, ".."), alike[0]])
    require_addresses([settings_at(tmp_path, "..")])
    require_addresses([alike[0], settings_at(tmp_path, "loans")])


def test_one_project_stays_at_the_addresses_of_old(site):
    assert site.dashboard.root == ""
    assert site.dashboard.guard.session_cookie == "ringfence_session"
    body = site.ask("/").body.decode()
    assert 'href="/runs"' in body
    assert 'rel="up"' not in body
    assert "servers" not in create_app(site.dashboard).openapi()
    assert site.ask("/runs/").status == 307
    assert all(
        "/p/" not in value for name, value in site.ask("/").getheaders() if name == "set-cookie"
    )
