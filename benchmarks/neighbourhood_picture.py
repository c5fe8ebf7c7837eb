"""A node's neighbourhood as SVG of the server, or by plotly: bytes, time to draw, links.

    python -m benchmarks.neighbourhood_picture

The same nodes and lines, drawn in fresh pages of Chromium. `links` are the neighbours that a
keyboard and a screen reader reach as links with a name, in the picture or in the list beside it.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
import statistics
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks.measuring import show
from ringfence.jobs.dashboard.html import environment
from ringfence.jobs.dashboard.pages.neighbourhood import class_colours, place_neighbours
from ringfence.jobs.views.explained_neighbours import ExplainedNeighbour

COUNTS, ROUNDS = (6, 24), 3
CLASSES = ("mule", "retail", "business")
PICTURE = """{% for one in lines %}<line x1="{{ one.x1 }}" y1="{{ one.y1 }}" x2="{{ one.x2 }}"
y2="{{ one.y2 }}"/>{% endfor %}{% for one in nodes %}<a href="{{ one.page }}" tabindex="-1">
<title>{{ one.text }}</title>
<circle cx="{{ one.x }}" cy="{{ one.y }}" r="9" class="{{ one.kind }}"/>
<text x="{{ one.x }}" y="{{ one.y }}">{{ one.label }}</text></a>{% endfor %}"""
LIST = """<ul>{% for one in nodes %}<li><a href="{{ one.page }}">{{ one.text }}</a></li>
{% endfor %}</ul>"""
DRAWN = """async draw => {
  const begin = performance.now();
  await eval(draw);
  document.body.getBoundingClientRect();
  return performance.now() - begin;
}"""


def main() -> None:
    package = importlib.util.find_spec("plotly")
    assert package is not None
    script = (Path(str(package.origin)).parent / "package_data" / "plotly.min.js").read_text()
    packed = len(gzip.compress(script.encode(), 6))
    with sync_playwright() as play:
        chromium = shutil.which("chromium")
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for count in COUNTS:
            show(_measure(browser, "svg", count, "", 0))
            show(_measure(browser, "plotly", count, script, packed))
        browser.close()


def _measure(browser: Browser, kind: str, count: int, script: str, packed: int) -> dict[str, Any]:
    nodes, lines = _place(count)
    body = _svg(nodes, lines) if kind == "svg" else json.dumps(_figure(nodes, lines))
    draw = f"place.innerHTML = {json.dumps(body)}"
    if kind == "plotly":
        draw = f"Plotly.newPlot(place, {body})"
    loads, times, links = [], [], 0
    for _ in range(ROUNDS):
        page = browser.new_page()
        page.set_content("<main id=place></main>")
        loads.append(page.evaluate(DRAWN, script))
        times.append(page.evaluate(DRAWN, draw))
        links = page.get_by_role("link").count()
        page.close()
    return {
        "picture": kind, "neighbours": count, "bytes": len(body.encode()), "script_bytes": packed,
        "load_ms": round(statistics.median(loads), 1),
        "draw_ms": round(statistics.median(times), 1),
        "links": links,
    }  # fmt: skip


def _place(count: int) -> tuple[list[Any], list[Any]]:
    around = [
        ExplainedNeighbour(f"account {i}", CLASSES[i % 3], None, None, "", "PAID", f"s:account {i}")
        for i in range(count)
    ]
    return place_neighbours(around, (), class_colours(CLASSES), "s:self")


def _svg(nodes: list[Any], lines: list[Any]) -> str:
    picture = environment().from_string(PICTURE).render(nodes=nodes, lines=lines)
    listed = environment().from_string(LIST).render(nodes=nodes)
    return f'<svg viewBox="-180 -130 360 260">{picture}</svg>{listed}'


def _figure(nodes: list[Any], lines: list[Any]) -> dict[str, Any]:
    edges = {"x": [], "y": [], "mode": "lines"}
    for line in lines:
        edges["x"] += [line["x1"], line["x2"], None]
        edges["y"] += [line["y1"], line["y2"], None]
    points = {
        "x": [node["x"] for node in nodes], "y": [node["y"] for node in nodes],
        "text": [node["label"] for node in nodes], "customdata": [node["page"] for node in nodes],
        "mode": "markers+text",
    }  # fmt: skip
    return {"data": [edges, points], "layout": {"showlegend": False}}


if __name__ == "__main__":
    main()
