"""Today brings itself up to date; health checks answer HEAD; pages fit a wide screen."""

import pytest
from sqlalchemy import text

from ringfence.jobs.dashboard.pages import PAGES
from ringfence.jobs.dashboard.pages.today import REFRESH_SECONDS
from ringfence.jobs.samples.audit_store import Plan
from tests.dashboard.conftest import open_site, settings_at
from tests.dashboard.test_states import ADDRESSES, SPILLS


@pytest.fixture(scope="module")
def changing(tmp_path_factory):
    """A dashboard whose store this module changes."""
    settings = settings_at(tmp_path_factory.mktemp("changing"))
    with open_site(settings, Plan(runs=3, per_run=40, days_apart=1.0)) as opened:
        yield opened


def set_alarm_words(site, words):
    with site.dashboard.store.transaction() as connection:
        connection.execute(text("UPDATE alarm SET words = :words"), {"words": words})


def pass_time(page):
    page.clock.run_for(1000 * REFRESH_SECONDS)


def test_today_shows_what_is_new_without_a_reload_and_draws_its_chart_again(changing, visiting):
    set_alarm_words(changing, "as it was")
    with visiting() as seen:
        seen.page.clock.install()
        seen.open(changing.url + "/")
        set_alarm_words(changing, "<b>another</b> day")
        assert "another" not in seen.page.inner_text("main")
        pass_time(seen.page)
        seen.page.wait_for_selector("[data-refreshed]:has-text('up to date at')")
        assert "<b>another</b> day" in seen.page.inner_text("main")
        seen.page.wait_for_selector(".chart svg", state="attached")
        assert seen.problems == []


def test_a_visit_is_remembered_and_a_reload_is_the_same_visit(changing, visiting):
    with visiting() as seen:
        seen.open(changing.url + "/")
        assert "since your last visit" not in seen.page.inner_text(".today")
        cookies = {c["name"]: c for c in seen.page.context.cookies()}
        visits = cookies["ringfence_visits"]
        assert visits["httpOnly"]
        assert visits["value"].endswith(".0")
        an_hour_ago = int(visits["value"].partition(".")[0]) - 3_600 * 10**9
        seen.page.context.add_cookies([{**visits, "value": f"{an_hour_ago}.0"}])
        seen.open(changing.url + "/")
        assert "40 new nodes since your last visit" in seen.page.inner_text(".today")
        seen.open(changing.url + "/")
        assert "40 new nodes since your last visit" in seen.page.inner_text(".today")


def test_a_page_that_is_being_read_is_left_alone(changing, visiting):
    """The negative control of the refresh: with something open nothing is exchanged."""
    with visiting() as seen:
        seen.page.clock.install()
        seen.open(changing.url + "/")
        seen.page.locator("main details").first.locator("summary").click()
        before = len(seen.requests)
        pass_time(seen.page)
        assert len(seen.requests) == before


def test_a_page_that_gets_no_answer_says_so(changing, visiting):
    with visiting() as seen:
        seen.page.clock.install()
        seen.open(changing.url + "/")
        seen.page.route("**/*", lambda route: route.abort())
        pass_time(seen.page)
        seen.page.wait_for_selector("[data-refreshed]:has-text('No answer at')")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_checks_answer_head(changing, path):
    answer = changing.ask(path, "HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert changing.ask(path).body


def test_pages_fit_a_screen_of_1920_pixels(changing, visiting):
    wide = {"viewport": {"width": 1920, "height": 1080}}
    with visiting(**wide) as seen:
        for page in PAGES:
            seen.open(changing.url + ADDRESSES.get(page.address, page.address))
            assert seen.page.evaluate(SPILLS) == [], page.name
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= 1920
        assert seen.problems == []


def test_three_hundred_classes_are_searched(tmp_path):
    classes = tuple(f"class {number:03}" for number in range(60))
    settings = settings_at(tmp_path)
    with open_site(settings, Plan(runs=1, per_run=30, classes=classes)) as many:
        body = many.ask("/worklist").body.decode()
        assert body.count('<a class="button" href="/worklist?class=') == 24
        assert "36 other classes" in body
        searched = many.ask("/worklist?class=S+05").body.decode()
        assert searched.count('<a class="button" href="/worklist?class=') == 10
        assert "No model knows" not in searched
        assert "No model knows" in many.ask("/worklist?class=nowhere").body.decode()
