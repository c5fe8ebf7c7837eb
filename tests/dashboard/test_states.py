"""Every page in every state of a project: it opens, says something, and nothing spills."""

import re

import pytest
from sqlalchemy import text

from ringfence.jobs.dashboard.pages import PAGES
from ringfence.jobs.samples.audit_store import Plan
from tests.dashboard.conftest import open_site, settings_at
from tests.dashboard.states import STATES

ADDRESSES = {
    "/runs/{seq}": "/runs/1",
    "/runs/compare": "/runs/compare?a=1&b=1",
    "/models/{version}": "/models/sample-1",
}
MORE = {
    "300 classes": ("/worklist?class=class+007", "/worklist?list=suspects", "/worklist?list=open",
                    "/lists?list=suspects&share=40", "/node?key=account+2-7",
                    "/classes?sort.classes=name"),
    "hostile text": ("/worklist?class=%3C/script%3E%3Csvg%20onload=window.hit=1%3E",),
    "10,000 runs": ("/coverage?from=2020-01-01", "/drift?from=2020-01-01", "/runs?sort.runs=seq"),
}  # fmt: skip
WITHOUT_RUNS = ("/runs/1", "/runs/compare?a=1&b=1", "/models/sample-1")
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESKTOP = {"viewport": {"width": 1366, "height": 900}, "color_scheme": "dark"}
SCREENS = {"hostile text": (PHONE, DESKTOP)}  # where what fits a phone might not fit a desktop
SPILLS = """[...document.querySelectorAll('main *, header *, footer *')].filter(element => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.right > document.documentElement.clientWidth + 1
    && !element.closest('.scroll, pre, .hidden, svg, .js-plotly-plot');
}).map(element => element.outerHTML.slice(0, 120))"""
ACTIVE_TAB = """(() => { const tab = document.querySelector('nav a[aria-current]');
  if (!tab) return null;
  const box = tab.getBoundingClientRect();
  return box.left >= 0 && box.right <= innerWidth + 1 && box.top >= 0 && box.bottom < innerHeight;
})()"""

PLOT_SHARES = """[...document.querySelectorAll('.js-plotly-plot')].map(
  chart => chart._fullLayout._size.w / chart.clientWidth)"""  # of the width, between the names


TURNED = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
AT_ONCE = ("hostile text", "empty project")  # the others in make test-slow


@pytest.fixture(
    scope="module",
    params=[
        name if name in AT_ONCE else pytest.param(name, marks=pytest.mark.long) for name in STATES
    ],
)
def state(request, tmp_path_factory):
    """A dashboard on a store in one of the states."""
    lists = [{"name": "suspects", "class": "class 007", "may_be_wrong": 0.3}]
    sections = {"lists": lists} if request.param == "300 classes" else {}
    settings = settings_at(tmp_path_factory.mktemp("state"), project="p", **sections)
    with open_site(settings, None, fill=STATES[request.param]) as opened:
        opened.state = request.param
        yield opened


def paths(state):
    own = [ADDRESSES.get(page.address, page.address) for page in PAGES]
    return [*own, *MORE.get(state.state, ())]


def test_every_page_has_a_sensible_state(state, visiting):
    for options in SCREENS.get(state.state, (PHONE,)):
        with visiting(**options) as seen:
            for path in paths(state):
                empty = state.state == "empty project"
                missing = empty and path in WITHOUT_RUNS  # said on a page
                seen.problems.clear()
                seen.open(state.url + path)
                assert seen.page.evaluate("window.hit") is None, path
                assert seen.page.locator("h1").count() == 1, path
                said = seen.page.inner_text("main")
                assert len(said.split()) > 5, path
                assert not set(said) & TURNED, path  # a name turns no sentence round
                for garbled in ("None", "nan", "undefined", "Infinity", "Traceback"):
                    assert not re.search(rf"\b{garbled}\b", said), (path, garbled)
                assert seen.page.evaluate(SPILLS) == [], (state.state, path)
                assert (
                    seen.page.evaluate("document.documentElement.scrollWidth")
                    <= (options["viewport"]["width"])
                ), path
                assert seen.page.evaluate(ACTIVE_TAB) is not False, path
                assert [share for share in seen.page.evaluate(PLOT_SHARES) if share < 0.4] == []
                known = [p for p in seen.problems if not (missing and "404" in p)]
                assert known == [], path


def test_an_empty_project_says_what_to_type_next(tmp_path):
    with open_site(settings_at(tmp_path), None, fill=STATES["empty project"]) as empty:
        for path, command in {"/": "ringfence train", "/runs": "ringfence score",
                              "/worklist": "ringfence train"}.items():  # fmt: skip
            assert command in empty.ask(path).body.decode(), path
        assert empty.ask("/runs/1").status == 404
        trail = empty.ask("/trail").body.decode()
        assert "Nothing is on record yet" in trail
        assert "elsewhere" not in trail


def test_a_row_that_was_edited_by_hand_is_told_in_words_on_page_and_api(tmp_path):
    with open_site(settings_at(tmp_path), Plan(runs=2, per_run=20)) as site:
        address = site.node_path
        assert site.ask(address).status == 200
        with site.dashboard.store.transaction() as connection:
            connection.execute(text("""UPDATE prediction SET p_values = '{"of"\\:3}'"""))
        page, answer = site.ask(address), site.ask(address.replace("/node", "/api/v1/nodes"))
        for told in (page, answer):
            assert told.status == 500
            assert b"is not as it was decided" in told.body
            assert b"ringfence verify" in told.body
        assert b"Back to Today" in page.body
        assert site.ask("/").status == 200


def test_pages_stay_small_whatever_a_project_holds(state):
    for path in paths(state):
        assert len(state.ask(path).body) < 500_000, path


@pytest.mark.parametrize("state", ["300 classes"], indirect=True)
def test_300_classes_are_searched_and_not_chosen_from_a_list(state, visiting):
    with visiting() as seen:
        for path in ("/worklist?class=class+007", "/node?key=account+2-7"):
            seen.open(state.url + path)
            options = seen.page.locator("select").evaluate_all("all => all.map(s => s.length)")
            assert max(options, default=0) < 30, path
            assert seen.page.locator("datalist option").count() >= 300
        seen.open(state.url + "/worklist?class=class+007")
        seen.page.fill(".filters input[name=class]", "class 01")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_url("**class=class+01*")
        assert "class 010" in seen.page.inner_text("main")
        assert "class 020" not in seen.page.inner_text("main")
        seen.page.click("text=class 012")
        seen.page.wait_for_url("**class=class+012*")
        assert "Nodes that may be class 012" in seen.page.inner_text("main")
        assert seen.problems == []


def test_what_spills_would_be_noticed(site, visiting):
    """The negative control: a box that is wider than the screen."""
    with visiting(**PHONE) as seen:
        seen.open(site.url + "/")
        assert seen.page.evaluate(SPILLS) == []
        seen.page.evaluate(
            "(() => { const wide = document.createElement('div');"
            " wide.style.width = '900px'; wide.textContent = 'x';"
            " document.querySelector('main').append(wide); })()"
        )
        assert len(seen.page.evaluate(SPILLS)) == 1
