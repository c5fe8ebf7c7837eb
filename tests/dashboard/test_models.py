"""Models: the list of versions, one page per version, its card as a file."""

import json
from urllib.parse import quote

from ringfence.jobs.lifecycle.card import read_card
from ringfence.jobs.lifecycle.versions import read_versions
from tests.dashboard.conftest import TOKEN

HIDDEN = """[...document.querySelectorAll('.scroll')].map(
  box => box.scrollWidth - box.clientWidth)"""  # pixels beyond a table's right edge


def test_versions_are_listed_and_each_has_a_page_with_its_card(site, visiting):
    queries = site.dashboard.queries
    (version, *_) = [one.version for one in read_versions(queries.store, queries.project).versions]
    card = read_card(queries.store, queries.project, version)
    with visiting() as seen:
        seen.open(site.url + "/models")
        assert version in seen.page.inner_text("main")
        seen.page.click(f"table >> text={version}")
        seen.page.wait_for_url(f"**/models/{quote(version)}")
        titles = seen.page.locator("section h2").all_inner_texts()
        assert [section.title for section in card.sections] == titles
        text = seen.page.inner_text("main")
        assert site.plan.classes[0] in text  # hostile, as text
        assert seen.page.evaluate("window.hit") is None
        assert seen.problems == []


def test_tables_of_models_fit_a_small_screen(locked, visiting):
    """Nothing to scroll at 1,180 pixels; what is left out comes by the column chooser."""
    with visiting(viewport={"width": 1180, "height": 800}) as seen:
        seen.open(f"{locked.url}/login")
        seen.page.fill("[name=token]", TOKEN)
        seen.page.click("main button")
        seen.open(locked.url + "/models")
        assert seen.page.evaluate(HIDDEN) == [0] * seen.page.locator(".scroll").count()
        assert seen.page.locator("#versions thead th").count() == 8
        more = "/models?" + "&".join(
            f"columns.versions={name}" for name in ("version", "network", "calibration")
        )
        seen.open(locked.url + more)
        assert seen.page.locator("#versions thead th").all_inner_texts() == [
            "version", "network", "calibration"
        ]  # fmt: skip


def test_a_card_comes_as_html_markdown_and_json(site):
    queries = site.dashboard.queries
    version = read_versions(queries.store, queries.project).versions[0].version
    front = f"/models/{quote(version)}"
    for name, kind in (("html", "text/html"), ("markdown", "text/markdown"),
                       ("json", "application/json")):  # fmt: skip
        answer = site.ask(f"{front}/card/{name}")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(kind)
        assert "attachment" in answer.headers["Content-Disposition"]
    assert json.loads(answer.body)["version"] == version
    assert site.ask(f"{front}/card/exe").status == 404
    assert site.ask("/models/nobody").status == 404
    assert site.ask(f"/models/{quote(version[:-1])}").status == 404  # a beginning is no address
