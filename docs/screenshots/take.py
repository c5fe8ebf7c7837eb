"""Take the pictures of the dashboard that the documentation shows: `make screenshots`.

    python docs/screenshots/take.py .ringfence/screenshots/ringfence.toml docs/screenshots [KEY]

Serves the project of a configuration and photographs its pages with the installed Chromium: every
page at 1366 pixels, all of them on a phone and in the dark on one sheet each; then every page of
made-up projects in odd states (`tests.dashboard.states`), a sheet per state. A picture ends below
the last box that fits, so that none is cut.
"""

import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote, urlencode

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for tests.dashboard
from sheet import write_sheet

from ringfence.connector.keys import decode_key
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.nodes import example_key
from ringfence.jobs.config.load import load
from ringfence.jobs.dashboard.app import create_app
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.pages import PAGES
from ringfence.jobs.dashboard.pages.models import address_of
from ringfence.jobs.dashboard.security import guard_of
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.worklist.table import classes_to_choose
from tests.dashboard.conftest import FLAGS, settings_at
from tests.dashboard.states import STATES

DESKTOP, PHONE = {"width": 1366, "height": 1200}, {"width": 390, "height": 1300}
SMALL_DESKTOP, SMALL_PHONE = {"width": 1366, "height": 900}, {"width": 390, "height": 1500}
LAST_BOX = """Math.max(0, ...[...document.querySelectorAll('.card, .verdict, .facts, tr')]
  .map(box => Math.ceil(box.getBoundingClientRect().bottom)).filter(y => y < innerHeight - 16))
  || innerHeight - 16"""
OF_ONE = {"run": "/runs/1", "comparison": "/runs/compare?a=1&b=1", "model": "/models/sample-1"}


def main(config: Path, folder: Path, key: str | None) -> None:
    """Photograph the project of `config` and the made-up states into `folder`."""
    with sync_playwright() as play, tempfile.TemporaryDirectory() as parts:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        _demo(browser, config, folder, key, Path(parts))
        for state in STATES:
            _state(browser, state, folder / "states", Path(parts))
        browser.close()


def _demo(browser: Browser, config: Path, folder: Path, key: str | None, parts: Path) -> None:
    settings = load(config)
    with open_workspace(settings) as workspace:
        dashboard = Dashboard(settings, workspace.store, guard_of(settings))
        node_key = str(key or decode_key(example_key(dashboard.queries) or "s:"))
        last = dashboard.queries.runs(last=1)[-1].seq
        addresses = {page.name: page.address for page in PAGES}
        addresses["node"] += f"?key={quote(node_key)}"
        addresses["why"] += f"?key={quote(node_key)}"
        addresses["model"] = address_of(dashboard.queries.models()[-1].version)
        addresses["worklist"] += "?class=mule"  # what the demo is about
        addresses["run"] = f"/runs/{last}"
        addresses["comparison"] += f"?a={last - 1}&b={last}"
        server, url = _serve(dashboard)
        try:
            for name, path in addresses.items():
                _shot(browser.new_page(viewport=DESKTOP), url + path, folder / f"{name}.png")
            dark = browser.new_page(viewport=DESKTOP, color_scheme="dark")
            _shot(dark, url + addresses["coverage"], folder / "coverage-dark.png")
            phone = browser.new_page(viewport=PHONE, color_scheme="dark")
            _shot(phone, url + "/", folder / "today-phone.png")
            on_phone = _shots(browser, url, addresses, parts, "phone", viewport=SMALL_PHONE)
            write_sheet(on_phone, 6, 260, folder / "phone.png")
            looks = {"viewport": SMALL_DESKTOP, "color_scheme": "dark"}
            in_the_dark = _shots(browser, url, addresses, parts, "dark", **looks)
            write_sheet(in_the_dark, 3, 560, folder / "dark.png")
        finally:
            server.should_exit = True


def _state(browser: Browser, state: str, folder: Path, parts: Path) -> None:
    """A sheet of every page of a made-up project."""
    name = state.replace(" ", "-").replace(",", "")
    settings = settings_at(parts / name)
    store = open_store(settings.audit.url)
    STATES[state](store, settings)
    dashboard = Dashboard(settings, store, guard_of(settings))
    addresses = {page.name: OF_ONE.get(page.name, page.address) for page in PAGES}
    if key := example_key(dashboard.queries):
        addresses["node"] += f"?key={quote(key)}"
        addresses["why"] += f"?key={quote(key)}"
        classes = classes_to_choose(dashboard.queries)
        addresses["worklist"] += f"?{urlencode({'class': classes[-1], 'known': 'any'})}"
    server, url = _serve(dashboard)
    try:
        pictures = _shots(browser, url, addresses, parts, name, viewport=SMALL_DESKTOP)
        write_sheet(pictures, 4, 420, folder / f"{name}.png")
    finally:
        server.should_exit = True
        store.close()


def _shots(
    browser: Browser, url: str, addresses: dict[str, str], parts: Path, mode: str, **looks: object
) -> dict[str, Path]:
    taken = {}
    for name, path in addresses.items():
        taken[name] = parts / f"{mode}-{name}.png"
        _shot(browser.new_page(**looks), url + path, taken[name])
    return taken


def _serve(dashboard: Dashboard) -> tuple[uvicorn.Server, str]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(dashboard), log_level="warning"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{listener.getsockname()[1]}"


def _shot(page: Page, url: str, path: Path) -> None:
    page.goto(url)
    page.wait_for_selector("[data-figure]:not([data-drawn])", state="detached", timeout=90_000)
    wide, end = page.evaluate("innerWidth"), page.evaluate(LAST_BOX)
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": wide, "height": end + 16})
    page.close()
    print(f"{path}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
