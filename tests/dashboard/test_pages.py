"""Every page in a real Chromium: hostile names, other hosts, axe, the phone, the dark, CSV."""

import html
import json
from dataclasses import replace
from urllib.parse import quote

import pytest
from sqlalchemy import text

from ringfence.jobs.cli.commands.record.explain import print_explanation
from ringfence.jobs.dashboard.html import render
from ringfence.jobs.dashboard.pages import PAGES
from ringfence.jobs.dashboard.pages.node import show_node
from ringfence.jobs.views.explain import describe_class, explain, record_of
from ringfence.jobs.views.explained_neighbours import ExplainedNeighbour
from ringfence.jobs.views.tables import TABLES, Column, Table, as_csv
from tests.dashboard.conftest import HOSTILE

WHY = "?key=" + quote(f"{HOSTILE[1]}2-7")
QUERIES = {"/runs/compare": "?a=1&b=3", "/why": WHY}
CHOSEN = "/worklist?class=" + quote(HOSTILE[2])
LISTED = (
    "/worklist?list=investigate", "/worklist?list=clear&known=any", "/worklist?list=open",
    "/lists?list=clear&share=10", "/worklist?key=a&max_size=9&group=region&class="
    + quote(HOSTILE[0]),
)  # fmt: skip
PATHS = tuple(
    page.address.format(seq=2, version="sample-1") + QUERIES.get(page.address, "") for page in PAGES
)


def test_every_page_is_opened_by_these_tests_and_stands_in_the_navigation(site):
    assert ("/", "/worklist", "/lists", "/coverage", "/classes", "/thresholds", "/drift", "/runs",
                     "/runs/compare?a=1&b=3", "/runs/2", "/models", "/models/sample-1", "/node",
                     f"/why{WHY}", "/trail") == PATHS  # fmt: skip
    body = site.ask("/").body.decode()
    for page in PAGES:
        entry = f'<a href="{page.address}"'
        assert (f"{entry} aria-current" in body) == (page.address == "/")
        assert (entry in body) == (page.part_of is None)


def test_every_page_opens_runs_no_hostile_name_and_asks_no_other_host(site, visiting):
    hostile = site.plan.classes
    with visiting() as seen:
        for path in (*PATHS, CHOSEN, site.node_path, "/node?key=" + quote(hostile[2]), "/nowhere"):
            seen.problems.clear()
            seen.open(site.url + path)
            assert seen.page.evaluate("window.hit") is None, path
            assert seen.page.locator("h1").count() == 1, path
            expected = [p for p in seen.problems if "404" not in p or path != "/nowhere"]
            assert expected == [], path
        assert all(url.startswith(site.url) for url in seen.requests)
        # the names are there, as text
        seen.open(site.url + "/classes")
        assert hostile[0] in seen.page.inner_text("main")
        assert seen.page.locator(".chart svg").count() > 0
        seen.open(site.url + site.node_path)
        assert hostile[1] in seen.page.inner_text("h1")


def test_a_page_that_did_not_escape_would_be_noticed(site, visiting):
    """The negative control of the matrix: the same names in a page without escaping."""
    with visiting() as seen:
        seen.page.set_content(f"<h1>{site.plan.classes[0]}</h1>")
        assert seen.page.evaluate("window.hit") == 1


def test_neighbours_with_hostile_names_are_drawn_as_text(site, visiting):
    one, two, three, _ = site.plan.classes
    around = (
        ExplainedNeighbour(one, two, None, None),
        ExplainedNeighbour(two, None, (three,), None),
        ExplainedNeighbour(three, None, (), None),
    )
    found = replace(explain(site.dashboard.queries, site.key), neighbours=around)
    body = render("node.html", **show_node(found, one), here="/node", project=one, csrf="")
    with visiting() as seen:
        seen.page.set_content(body)  # no policy stands in the way here
        assert seen.page.evaluate("window.hit") is None
        assert seen.page.locator(".picture circle").count() == 1 + len(around)
        seen.page.click("summary")
        assert f"{three}: no class conforms" in seen.page.inner_text("details")


def test_charts_draw_and_tell_their_numbers_under_the_strict_policy(site, visiting):
    with visiting() as seen:
        seen.open(site.url + "/coverage")
        for chart in seen.page.locator(".chart").all():
            chart.scroll_into_view_if_needed()
            box = chart.bounding_box()
            seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            seen.page.wait_for_selector(".hoverlayer > *", state="attached")
        assert seen.problems == []
        # the negative control: any other inline style is refused, and that is noticed
        with seen.page.expect_console_message():
            seen.page.evaluate("document.body.innerHTML += '<p style=\"color: red\">x</p>'")
        assert "Content Security Policy" in seen.problems[0]


@pytest.mark.long
def test_axe_finds_nothing_serious_and_the_keyboard_reaches_the_content(site, visiting):
    from axe_playwright_python.sync_playwright import Axe

    for scheme in ("light", "dark"):
        with visiting(color_scheme=scheme) as seen:
            for path in (*PATHS, *LISTED, CHOSEN, site.node_path):
                seen.open(site.url + path)
                found = Axe().run(seen.page).response["violations"]
                grave = [
                    (one["id"], one["nodes"][0]["html"][:200])
                    for one in found
                    if one["impact"] in ("serious", "critical")
                ]
                assert grave == [], (scheme, path)
    with visiting() as seen:
        seen.open(site.url + "/")
        seen.page.keyboard.press("Tab")
        assert seen.page.evaluate("document.activeElement.getAttribute('href')") == "#main"
        seen.open(site.url + "/lists")  # the slider is reached and moved without a mouse
        for _ in range(60):
            seen.page.keyboard.press("Tab")
            if seen.page.evaluate("document.activeElement.matches('input[data-shares]')"):
                break
        told = seen.page.inner_text("[data-told]")
        seen.page.keyboard.press("End")
        assert seen.page.inner_text("[data-told]") != told


def test_a_phone_shows_pages_without_sideways_scrolling_in_the_dark(site, visiting):
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    with visiting(**phone) as seen:
        for path in (*PATHS, *LISTED, CHOSEN, site.node_path):
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
    shown = as_csv(Table("x", "x", (Column("a", "a"),), [{"a": "=1+1"}, {"a": "plain"}]))
    assert shown.splitlines() == ["a", "'=1+1", "plain"]


def test_the_terminal_tells_the_same_of_a_node_as_its_page(site, capsys):
    found = explain(site.dashboard.queries, site.key)
    print_explanation(found)
    said = "".join(capsys.readouterr().out.split())
    page = html.unescape(site.ask(site.node_path).body.decode())
    facts = [found.sentence, describe_class(found), *(value for _, value in record_of(found))]
    for fact in facts:
        assert "".join(fact.split()) in said, fact
        assert fact[1:] in page, fact
    assert len(found.p_values) == 4
    assert all(f"{bar.p:.3f}" in page for bar in found.p_values)


def test_the_chain_is_verified_and_an_edit_is_shown(site):
    assert "fit: nothing was changed" in site.ask("/trail").body.decode()
    lines = site.ask("/trail/export").body.decode().splitlines()
    assert json.loads(lines[0])["n"] == 1
    with site.dashboard.store.transaction() as connection:
        connection.execute(text("DROP TRIGGER audit_no_update"))
        connection.execute(text("UPDATE audit SET body = body || ' ' WHERE n = 3"))
    assert "BROKEN: chain entry 3" in site.ask("/trail").body.decode()
    with site.dashboard.store.transaction() as connection:
        connection.execute(text("UPDATE audit SET body = rtrim(body) WHERE n = 3"))


def _edit_the_total(site, change):
    with site.dashboard.store.transaction() as connection:
        connection.execute(text(f"UPDATE coverage SET {change} WHERE slice = 'total' AND seq = 1"))


def test_an_edited_row_is_shown_at_once_beside_a_sound_chain(site):
    assert "fit: nothing was changed" in site.ask("/trail").body.decode()
    _edit_the_total(site, "known = known + 1")
    page = site.ask("/trail").body.decode()
    assert "CHANGED: coverage of run 1, total: known changed after the audit" in page
    _edit_the_total(site, "known = known - 1, alpha = alpha + 1")  # alpha is part of its key
    assert "CHANGED: coverage of run 1, total" in site.ask("/trail").body.decode()
    _edit_the_total(site, "alpha = 0.1")
    assert "fit: nothing was changed" in site.ask("/trail").body.decode()
