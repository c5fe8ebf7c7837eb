"""Why this set, in a browser: a click on the Node page, a picture, numbers that are the verb's."""

import contextlib
import socket
import threading
import time
from dataclasses import dataclass
from urllib.parse import quote

import pytest
import uvicorn

from ringfence.connector.keys import decode_key
from ringfence.connector.store import predictions
from ringfence.jobs.dashboard.app import create_app
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.pages.why import show_reasons
from ringfence.jobs.dashboard.security import guard_of
from ringfence.jobs.explanation.reasons import Part, Reason, Reasons
from ringfence.jobs.views.explain import explain, run_explain
from tests.patience import PATIENCE_SECONDS
from tests.stores import sqlite


@contextlib.contextmanager
def serving(workspace):
    serve = workspace.settings.serve.model_copy(update={"why_seconds": PATIENCE_SECONDS})
    settings = workspace.settings.model_copy(update={"serve": serve})
    dashboard = Dashboard(settings, workspace.store, guard_of(settings))
    dashboard.graph.seconds = PATIENCE_SECONDS
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(dashboard), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        dashboard.close()


@pytest.mark.slow
@sqlite
def test_a_click_on_the_node_page_tells_why_and_changes_nothing(scored, visiting, tmp_path):
    workspace = scored.workspace
    keys = sorted(predictions.evaluated_keys(workspace.store, workspace.project))
    near = "MATCH (n:Account {id: $id})--(m:Account) RETURN count(DISTINCT m) AS near"
    key = max(keys, key=lambda one: workspace.graph.read(near, id=decode_key(one))[0]["near"])
    told = run_explain(workspace, key, why=True)
    files = sorted((file, file.stat().st_mtime_ns) for file in workspace.folder.rglob("*"))
    with serving(workspace) as url, visiting() as seen:
        seen.open(f"{url}/node?key={quote(key)}")
        assert_neighbours_have_the_colour_of_their_class(seen.page)
        assert "neighbours from your graph" in seen.page.inner_text("footer")
        seen.page.click("text=Why this set?")
        seen.page.wait_for_url("**/why?*")
        text = seen.page.inner_text("main")
        assert told.reasons.graph in text
        assert "computed now from the model" in seen.page.inner_text("footer")
        strongest = told.reasons.reasons[0]
        assert strongest.part.describe() in text
        lines = seen.page.locator(".picture.why line")
        drawn = [float(lines.nth(i).get_attribute("stroke-width")) for i in range(lines.count())]
        assert len(drawn) == min(told.reasons.neighbours, 24)
        assert drawn == sorted(drawn, reverse=True)
        assert drawn[0] > drawn[-1]
        assert seen.page.locator(".bars.why li").count() > 5
        # the line is as thick as the attribute says: no rule of the style sheet wins over it
        shown = lines.first.evaluate("line => getComputedStyle(line).strokeWidth")
        assert float(shown.removesuffix("px")) == pytest.approx(drawn[0])
        seen.page.screenshot(path=tmp_path / "why.png", full_page=True)
        other = next(name for name in told.reasons.classes if f"against {name}" not in text)
        seen.page.click(f".choices-of-class >> text='{other}'")
        seen.page.wait_for_url("**class=*")
        assert f"for or against {other}" in seen.page.inner_text("main").lower()
        assert seen.problems == []
    assert sorted((f, f.stat().st_mtime_ns) for f in workspace.folder.rglob("*")) == files


FILLS = """circles => circles.map(circle => [
  [...circle.classList].find(name => /^c[0-9]$/.test(name)),
  circle.classList.contains("known"), getComputedStyle(circle).fill])"""
DOTS = """dots => dots.map(dot => [
  [...dot.classList].find(name => /^c[0-9]$/.test(name)),
  getComputedStyle(dot).backgroundColor])"""


@pytest.mark.slow
@sqlite
def test_a_click_opens_a_neighbour_in_the_picture_and_closes_it_again(scored, visiting):
    workspace = scored.workspace
    keys = sorted(predictions.evaluated_keys(workspace.store, workspace.project))
    far = (
        "MATCH (n:Account {id: $id})--(m:Account)--(o:Account) WHERE o <> n "
        "AND NOT (n)--(o) RETURN count(DISTINCT o) AS far"
    )
    key = max(keys, key=lambda one: workspace.graph.read(far, id=decode_key(one))[0]["far"])
    with serving(workspace) as url, visiting() as seen:
        seen.open(f"{url}/node?key={quote(key)}")
        circles = seen.page.locator(".picture a circle")
        near = circles.count()
        for place in range(near):
            seen.page.click("text=As a list")
            seen.page.locator("ul.dots a", has_text="open").nth(place).click()
            seen.page.wait_for_url("**open=*")
            if circles.count() > near:
                break
            seen.open(f"{url}/node?key={quote(key)}")
        assert circles.count() > near
        assert_neighbours_have_the_colour_of_their_class(seen.page)
        seen.page.click("text=As a list")
        seen.page.locator("ul.dots a", has_text="close").click()
        seen.page.wait_for_function(
            f"document.querySelectorAll('.picture a circle').length == {near}"
        )
        assert "open=" not in seen.page.url
        assert seen.problems == []


def assert_neighbours_have_the_colour_of_their_class(page):
    """As computed by the browser: no rule for known classes wins over the class's colour."""
    legend = dict(page.locator("p .dot").evaluate_all(DOTS))
    drawn = [fill for fill in page.locator(".picture circle").evaluate_all(FILLS) if fill[0]]
    assert any(known for _, known, _ in drawn), "a neighbour of known class is in the picture"
    assert {(name, fill) for name, _, fill in drawn} <= set(legend.items())
    assert len(set(legend.values())) == len(legend)


@dataclass
class Asked:
    """Reasons that need no graph: three classes, hostile names."""

    names: tuple

    def reasons(self):
        part = Part("neighbour", self.names[0], self.names[1], self.names[2], self.names[3])
        found = (
            Reason(part, (0.1, 0.4, 0.2, 0.0), (self.names[1],), (self.names[0],), 0.4),
            Reason(Part("column", self.names[2]), (0.5, 0.1, 0.2, 0.0), (), (), 0.1),
        )
        p, levels = (0.5, 0.05, 0.2, 0.0), (0.1,) * 4
        return Reasons(
            "the graph", "v1", self.names, p, levels, self.names[:1], 1, 1, found, left_unasked=3
        )


def test_hostile_names_are_text_and_a_part_is_for_what_sinks_without_it(site):
    explanation = explain(site.dashboard.queries, site.key)
    values = show_reasons(explanation, Asked(site.plan.classes).reasons())
    assert values["focus"] == site.plan.classes[0]
    (edge,), (bar,) = values["edges"], values["bars"]
    assert edge["way"] == "for"  # without it p falls from .5 to .1
    assert (bar["way"], bar["width"]) == ("nothing", 0)
    assert values["rows"][0]["flips"]
    chosen = show_reasons(explanation, Asked(site.plan.classes).reasons(), None,
                          site.plan.classes[1])  # fmt: skip
    assert chosen["edges"][0]["way"] == "against"


def test_where_nothing_can_be_asked_the_page_says_so(site):
    answer = site.ask("/why?key=" + quote(site.key))
    assert answer.status == 200
    assert "It can&#39;t be asked here" in answer.body.decode() or b"can't be asked" in answer.body
    assert site.ask("/why?key=nobody").status == 404
    asked = site.ask("/why")
    assert asked.status == 200
    assert b'name="key"' in asked.body


def test_zero_seconds_take_the_page_away(site):
    serve = site.dashboard.settings.serve
    before = site.dashboard.settings
    site.dashboard.settings = before.model_copy(
        update={"serve": serve.model_copy(update={"why_seconds": 0.0})}
    )
    try:
        assert site.ask("/why?key=" + quote(site.key)).status == 404
        assert b"Why this set?" not in site.ask(site.node_path).body
    finally:
        site.dashboard.settings = before
    assert b"Why this set?" in site.ask(site.node_path).body
