"""Tables on pages: columns by choice, sorting, headings that explain themselves, a scroll hint."""

import re

from ringfence.jobs.views.tables import TABLES

SORT = "/runs?sort.runs="


def headings(site, path, table):
    body = site.ask(path).body.decode()
    found = re.search(rf'id="{table}">.*?<thead>(.*?)</thead>', body, re.DOTALL)[1]
    return re.findall(r">([^<>]+)(?:<span[^>]*>.</span>)?</a></th>", found)


def listed(site, path):
    return [int(seq) for seq in
            re.findall(r'<td><a href="/runs/(\d+)">', site.ask(path).body.decode())]  # fmt: skip


def test_every_column_is_explained_in_a_sentence():
    for view in TABLES.values():
        for column in view.columns:
            assert re.fullmatch(r"[A-Z].{8,}\.", column.about), (view.name, column.title)
        keys = {column.key for column in view.columns}
        assert set(view.lead) <= keys
        assert {column.beside for column in view.columns if column.beside} <= keys
        first = [column for column in view.columns if not column.extra]
        assert 1 < len(first) <= 8, view.name


def test_few_columns_stand_at_first_and_others_by_choice(site):
    assert headings(site, "/coverage", "coverage-run") == [
        "run", "decided", "known", "covered", "mean size", "verdict", "usual band"
    ]  # fmt: skip
    chosen = "/coverage?columns.coverage-run=full&columns.coverage-run=seq&columns.x=y"
    assert headings(site, chosen, "coverage-run") == ["run", "full"]
    assert headings(site, chosen, "coverage-total")[0] == "run"  # the others stay as they are
    unknown = "/coverage?columns.coverage-run=%3Cscript%3E"
    assert headings(site, unknown, "coverage-run")[2] == "known"


def test_a_click_sorts_and_the_next_one_turns_the_order_round(site):
    assert listed(site, "/runs") == [4, 3, 2, 1]
    assert listed(site, SORT + "seq") == [1, 2, 3, 4]
    assert listed(site, SORT + "-seq") == [4, 3, 2, 1]
    assert listed(site, SORT + "project") == [4, 3, 2, 1]  # no such column: as it was
    body = site.ask(SORT + "-n_evaluated").body.decode()
    assert 'aria-sort="descending"' in body
    assert 'href="/runs?sort.runs=n_evaluated#runs"' in body


def test_a_person_chooses_columns_sorts_and_reads_what_a_heading_means(site, visiting):
    with visiting(viewport={"width": 1366, "height": 900}) as seen:
        page = seen.page
        seen.open(site.url + "/coverage?from=2020-01-01")
        card = page.locator("#coverage-run")
        card.locator("summary").click()
        card.get_by_label("naive covered").check()
        card.get_by_role("button").click()
        page.wait_for_url("**columns.coverage-run=naive_coverage**")
        assert "from=2020-01-01" in page.url  # the range stays
        shown = card.locator("thead").inner_text()
        assert "naive covered" in shown
        assert "naive size" in shown
        card.locator("thead a", has_text="known").click()
        page.wait_for_url("**sort.coverage-run=-known**")
        assert "columns.coverage-run=naive_coverage" in page.url
        known = [int(row.split("\t")[2]) for row in card.locator("tbody tr").all_inner_texts()]
        assert known == sorted(known, reverse=True)
        heading = card.locator("thead a", has_text="mean size")
        heading.focus()  # as the keyboard does
        tip = page.locator("#tooltip")
        assert (
            tip.inner_text()
            == "Classes per set on average: a large set covers easily and says little."
        )
        assert heading.get_attribute("aria-describedby") == "tooltip"
        assert tip.bounding_box()["y"] > 0
        page.keyboard.press("Escape")
        assert not tip.is_visible()
        assert seen.problems == []


def test_the_keyboard_reaches_headings_of_tables_without_links(site, visiting):
    with visiting() as seen:
        seen.open(site.url + "/")
        heading = seen.page.locator(".tip", has_text="promised")
        heading.focus()
        assert seen.page.evaluate("document.activeElement.textContent") == "promised"
        assert "What is promised to it" in seen.page.locator("#tooltip").inner_text()


def test_pages_choose_and_sort_without_scripts(site, visiting):
    with visiting(java_script_enabled=False) as seen:
        page = seen.page
        page.goto(site.url + "/runs")
        page.locator("#runs thead a", has_text="evaluated").click()
        page.wait_for_url("**sort.runs**")
        card = page.locator("#runs")
        card.locator("summary").click()
        card.get_by_label("threshold").check()
        card.get_by_role("button").click()
        page.wait_for_url("**columns.runs=threshold**")
        assert "threshold" in card.locator("thead").inner_text()
        assert card.locator("thead a").first.get_attribute("title")  # the browser's own tooltip
        page.fill("input[name=from]", "2020-01-01")
        page.click("text=Show this time")
        page.wait_for_url("**from=2020-01-01**")
        assert "4 of 4 runs." in page.inner_text(".range")


def test_a_table_that_goes_on_sideways_shows_it(site, visiting):
    every = "&".join(
        f"columns.coverage-run={column.key}" for column in TABLES["coverage-run"].columns
    )
    with visiting(viewport={"width": 390, "height": 844}) as seen:
        seen.open(f"{site.url}/coverage?{every}")
        box = seen.page.locator("#coverage-run .scroll")
        wide, shown = box.evaluate("box => [box.scrollWidth, box.clientWidth]")
        assert wide > shown
        style = box.evaluate("box => getComputedStyle(box).backgroundAttachment")
        assert style.split(", ")[:4] == [
            "local",
            "local",
            "scroll",
            "scroll",
        ]  # shadows at the ends
