"""Take the pictures of the dashboard that the documentation shows: `make screenshots`.

    python docs/screenshots/take.py .ringfence/screenshots/ringfence.toml docs/screenshots [KEY]

Serves the project of a configuration and photographs its pages with the installed Chromium. A
picture ends below the last box that fits, so that none is cut.
"""

import shutil
import socket
import sys
import threading
import time
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from ringfence.connector.keys import decode_key
from ringfence.connector.store.queries.nodes import example_key
from ringfence.jobs.config.load import load
from ringfence.jobs.dashboard.app import create_app
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.pages import PAGES
from ringfence.jobs.dashboard.security import guard_of
from ringfence.jobs.project.workspace import open_workspace

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = {"width": 1180, "height": 1200}, {"width": 390, "height": 1300}
LAST_BOX = """Math.max(0, ...[...document.querySelectorAll('.card, .verdict, .facts, tr')]
  .map(box => Math.ceil(box.getBoundingClientRect().bottom)).filter(y => y < innerHeight - 16))
  || innerHeight - 16"""


def main(config: Path, folder: Path, key: str | None) -> None:
    """Serve the project of `config` and photograph every page into `folder`."""
    settings = load(config)
    with open_workspace(settings) as workspace:
        dashboard = Dashboard(settings, workspace.store, guard_of(settings))
        node_key = key or decode_key(example_key(dashboard.queries) or "s:")
        addresses = {page.name: page.address for page in PAGES if page.pictured}
        addresses["node"] += f"?key={node_key}"
        addresses["worklist"] += "?class=mule"  # what the demo is about
        server, url = _serve(dashboard)
        try:
            _photograph(url, folder, addresses)
        finally:
            server.should_exit = True


def _serve(dashboard: Dashboard) -> tuple[uvicorn.Server, str]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(dashboard), log_level="warning"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{listener.getsockname()[1]}"


def _photograph(url: str, folder: Path, addresses: dict[str, str]) -> None:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, path in addresses.items():
            _shot(browser.new_page(viewport=DESKTOP), url + path, folder / f"{name}.png")
        dark = browser.new_page(viewport=DESKTOP, color_scheme="dark")
        _shot(dark, url + addresses["coverage"], folder / "coverage-dark.png")
        phone = browser.new_page(viewport=PHONE, color_scheme="dark")
        _shot(phone, url + "/", folder / "today-phone.png")
        browser.close()


def _shot(page: Page, url: str, path: Path) -> None:
    page.goto(url)
    page.wait_for_selector("[data-figure]:not([data-drawn])", state="detached", timeout=90_000)
    wide, end = page.evaluate("innerWidth"), page.evaluate(LAST_BOX)
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": wide, "height": end + 16})
    page.close()
    print(f"{path}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
