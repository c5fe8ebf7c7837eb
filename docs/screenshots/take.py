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
from sqlalchemy import select

from ringfence.connector.keys import decode_key
from ringfence.connector.store import Store
from ringfence.connector.tables import prediction
from ringfence.jobs.config import load
from ringfence.jobs.settings import Settings
from ringfence.jobs.web.app import create_app
from ringfence.jobs.web.context import Dashboard
from ringfence.jobs.web.security import guard_of
from ringfence.jobs.workspace import open_workspace

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGES = {
    "today": "/",
    "coverage": "/coverage",
    "classes": "/classes",
    "thresholds": "/thresholds",
    "drift": "/drift",
    "trail": "/trail",
}
DESK, PHONE = {"width": 1180, "height": 1200}, {"width": 390, "height": 1300}
LAST_BOX = """Math.max(...[...document.querySelectorAll('.card, .verdict, .facts')]
  .map(box => Math.ceil(box.getBoundingClientRect().bottom)).filter(y => y < innerHeight - 16))"""


def main(config: Path, folder: Path, key: str | None) -> None:
    """Serve the project of `config` and photograph every page into `folder`."""
    settings = load(config)
    with open_workspace(settings) as workspace:
        store = workspace.store
        found = key or _some_key(store, settings)
        server, url = _serve(Dashboard(settings, store, guard_of(settings)))
        try:
            _photograph(url, folder, PAGES | {"node": f"/node?key={found}"})
        finally:
            server.should_exit = True


def _some_key(store: Store, settings: Settings) -> str:
    """A node with two classes, of which one turned out right, and a handful of neighbours."""
    query = select(prediction.c.node_key).where(
        prediction.c.project == settings.project,
        prediction.c.size == 2,
        prediction.c.covered,
        prediction.c.degree.between(6, 12),
    )
    first = query.order_by(prediction.c.seq.desc(), prediction.c.node_key).limit(1)
    with store.reading() as connection:
        return str(decode_key(connection.execute(first).scalar_one()))


def _serve(dashboard: Dashboard) -> tuple[uvicorn.Server, str]:
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(dashboard), log_level="warning"))
    threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{door.getsockname()[1]}"


def _photograph(url: str, folder: Path, pages: dict[str, str]) -> None:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, path in pages.items():
            _shot(browser.new_page(viewport=DESK), url + path, folder / f"{name}.png")
        dark = browser.new_page(viewport=DESK, color_scheme="dark")
        _shot(dark, url + pages["coverage"], folder / "coverage-dark.png")
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
