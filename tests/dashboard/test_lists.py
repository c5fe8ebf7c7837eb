"""Lists on their page, in the API, as CSV and in the metrics."""

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from sqlalchemy import text

from ringfence.connector.list_terms import ListTerms
from ringfence.jobs.samples.audit_store import VERSION, Plan
from ringfence.jobs.scoring.list_trade_off import ListAtShare, ListTradeOff
from ringfence.jobs.views.list_curve import save_curve
from tests.dashboard.conftest import open_site, settings_at

LISTS = [
    {"name": "investigate", "class": "mule", "may_be_wrong": 0.2},
    {"name": "clear", "not": "mule", "may_be_wrong": 0.05, "per": "stream"},
]


@pytest.fixture(scope="module")
def listing(tmp_path_factory):
    settings = settings_at(tmp_path_factory.mktemp("lists"), lists=LISTS)
    with open_site(settings, Plan(runs=3, per_run=120)) as opened:
        yield opened


def test_the_page_has_each_list_with_its_promise_and_verdict(listing):
    page = listing.ask("/lists").body.decode()
    for words in ("List investigate", "not mule", "all runs", "last 90 days", "may be wrong"):
        assert words in page


def test_the_api_and_the_csv_have_the_same_rows(listing):
    rows = json.loads(listing.ask("/api/v1/lists").body)
    assert {(row["name"], row["slice"]) for row in rows} == {
        (name, slice_) for name in ("investigate", "clear") for slice_ in ("total", "window", "run")
    }
    lines = listing.ask("/csv/lists").body.decode().splitlines()
    assert len(lines) == 1 + len(rows)


def test_the_metrics_have_the_realised_share(listing):
    rows = json.loads(listing.ask("/api/v1/lists").body)
    total = next(row for row in rows if (row["name"], row["slice"]) == ("clear", "total"))
    exposed = listing.ask("/metrics").body.decode()
    (line,) = [
        line
        for line in exposed.splitlines()
        if line.startswith("ringfence_list_wrong_ratio{") and 'list="clear"' in line
    ]
    assert float(line.split()[-1]) == pytest.approx(total["pooled"])


def test_without_lists_the_page_says_how_to_get_one(tmp_path):
    with open_site(settings_at(tmp_path), Plan(runs=1, per_run=20)) as site:
        page = site.ask("/lists").body.decode()
        assert "Add a [[lists]] table" in page
        assert "The piles" not in page
        assert "data-shares" not in page
        assert json.loads(site.ask("/api/v1/lists").body) == []
        assert 'aria-label="Lists"' not in site.ask("/worklist?class=mule").body.decode()


def test_the_api_has_the_nodes_of_each_pile(listing):
    piles = json.loads(listing.ask("/api/v1/lists/nodes?limit=1000").body)
    assert (piles["run"], len(piles["nodes"]), piles["left_out"]) == (3, 120, 0)
    of_pile = [node for node in piles["nodes"] if node["pile"] == "investigate"]
    some = json.loads(listing.ask("/api/v1/lists/nodes?pile=investigate&limit=2").body)
    assert some["nodes"] == of_pile[:2]
    assert some["left_out"] == piles["piles"]["investigate"] - 2
    assert json.loads(listing.ask("/api/v1/lists/nodes?run=1").body)["run"] == 1
    for wrong, status in (("run=99", 404), ("run=0", 422), ("pile=burn", 422), ("limit=0", 422)):
        assert listing.ask(f"/api/v1/lists/nodes?{wrong}").status == status


def test_the_api_has_the_worklist_page_by_page_as_the_csv_has_it(listing):
    found, after = [], ""
    while after is not None:
        address = f"/api/v1/worklist?class=mule&known=any&limit=50&{urlencode({'after': after})}"
        page = json.loads(listing.ask(address).body)
        found += page["nodes"]
        after = page["after"]
    lines = csv.DictReader(
        io.StringIO(listing.ask("/csv/worklist?class=mule&known=any").body.decode())
    )
    assert [node["node"] for node in found] == [line["node"] for line in lines]
    assert {"outcome", "note", "by", "state"} <= set(found[0])
    for wrong, status in (
        ("class=nobody", 404), ("class=mule&minp=1", 400), ("class=mule&state=burnt", 400),
        ("", 404), ("class=mule&after=x", 400), ("class=mule&limit=1001", 422),
    ):  # fmt: skip
        assert listing.ask(f"/api/v1/worklist?{wrong}").status == status, wrong


def ask_worklist(listing, **filters):
    return json.loads(listing.ask(f"/api/v1/worklist?{urlencode(filters)}").body)


def test_the_piles_of_the_last_run_lead_to_their_worklists(listing):
    page = listing.ask("/lists").body.decode()
    piles = json.loads(listing.ask("/api/v1/lists/nodes?limit=1000").body)
    listed = {
        facts["name"]: facts["listed"]
        for facts in json.loads(listing.ask("/api/v1/lists").body)
        if facts["slice"] == "run"
    }
    counts = {**listed, "open": piles["piles"]["open"]}
    for name, count in counts.items():
        link = f'<a class="headline" href="/worklist?list={name}&amp;run=3">{count} node'
        assert link in page, name
        rows = ask_worklist(listing, list=name, run=3, known="any", state="any", limit=1000)
        assert len(rows["nodes"]) == count, name


def test_a_worklist_of_a_list_leads_with_its_promise_and_what_came_true(listing):
    page = unescape(listing.ask("/worklist?list=investigate").body.decode())
    assert "at most 20\u00a0% of its nodes are not mule (measured, not proved)" in page
    rows = json.loads(listing.ask("/api/v1/lists").body)
    total = next(r for r in rows if (r["name"], r["slice"]) == ("investigate", "total"))
    assert f"{total['false']:,} of {total['known']:,} of known class are not mule" in page
    assert "of such nodes were right" not in page
    of_class = unescape(listing.ask("/worklist?class=mule").body.decode())
    assert "of such nodes were right" in of_class
    assert "at most 20\u00a0%" not in of_class
    cleared = unescape(listing.ask("/worklist?list=clear").body.decode())
    assert "of all runs together, at most 5\u00a0% of its nodes are mule" in cleared
    assert "no promise about lists" in listing.ask("/worklist?list=open").body.decode()


def test_csv_api_and_page_hold_the_same_nodes_of_a_list(listing):
    for name in ("investigate", "clear", "open"):
        found, address = [], f"/worklist?known=any&list={name}"
        while address:
            body = listing.ask(address).body.decode()
            found += re.findall(
                r'<th scope="row"><a href="/node\?key=[^"]+&amp;list=[^"]*">([^<]+)', body
            )
            more = re.search(r'class="button" href="([^"]+)">Next', body)
            address = more and unescape(more[1])
        lines = csv.DictReader(
            io.StringIO(listing.ask(f"/csv/worklist?list={name}&known=any").body.decode())
        )
        assert [line["node"] for line in lines] == found
        after, through_api = "", []
        while after is not None:
            page = ask_worklist(listing, list=name, known="any", limit=50, after=after)
            through_api += [node["node"] for node in page["nodes"]]
            after = page["after"]
        assert through_api == found
        assert len(found) > 60


def test_the_next_case_stays_on_the_list(listing):
    """Also of a list that clears, whose nodes do not hold the class in their set."""
    page = listing.ask("/worklist?list=clear&run=3").body.decode()
    keys = re.findall(r'<th scope="row"><a href="([^"]+)">([^<]+)', page)
    address, seen = unescape(keys[0][0]), []
    while address and len(seen) < len(keys):
        body = listing.ask(address).body.decode()
        seen.append(re.search(r"<h1>Node ([^<]+)</h1>", body)[1])
        assert "Back to list clear" in body
        more = re.search(r'rel="next"[^>]* href="([^"]+)"', body)
        address = more and unescape(more[1])
        if address:
            listed = dict(parse_qsl(dict(parse_qsl(urlsplit(address).query))["list"]))
            assert listed == {"list": "clear", "run": "3"}
    assert seen == [key for _, key in keys]


def test_a_list_that_is_none_is_refused_with_those_that_are(listing):
    for address in ("/worklist", "/csv/worklist", "/api/v1/worklist"):
        answer = listing.ask(f"{address}?list=nobody")
        assert answer.status == 400
        assert b"investigate" in answer.body
    assert listing.ask("/worklist?list=clear&class=retail").status == 400
    assert listing.ask("/worklist?list=clear&min_p=0.5").status == 400


def test_today_leads_to_the_list_of_the_last_run(listing):
    waiting = len(ask_worklist(listing, list="investigate", run=3)["nodes"])
    link = 'href="/worklist?list=investigate&amp;run=3">'
    assert f"{link}{waiting} nodes of the last run on list investigate" in (
        listing.ask("/").body.decode()
    )


CURVE = ListTradeOff(
    ListTerms("investigate", "mule", False, 0.2, "run"), VERSION, 380, 90, "",
    (ListAtShare(0.1, 20, 0.05, 0.3, 0.08), ListAtShare(0.2, 40, 0.1, 0.5, 0.15),
     ListAtShare(0.5, 120, 0.3, 0.9, 0.45)),
)  # fmt: skip


@pytest.fixture
def curve(listing):
    """The measurement of a list, as `ringfence advise --list` keeps it."""
    save_curve(listing.dashboard.settings, CURVE)
    yield CURVE
    for file in listing.dashboard.settings.engine.folder.rglob("lists/*.json"):
        file.unlink()


def open_shares(listing, name):
    """Shares of the last run's nodes of unknown class on a list."""
    query = "SELECT lists FROM prediction WHERE seq = 3 AND label IS NULL"
    rows = listing.dashboard.queries.rows(text(query))
    shares = [json.loads(row["lists"] or "{}").get(name) for row in rows]
    return len(rows), [share for share in shares if share is not None]


def test_another_share_says_what_the_list_would_hold_without_scripts(listing, curve):
    unknown, shares = open_shares(listing, "investigate")
    page = unescape(listing.ask("/lists?list=investigate&share=10").body.decode())
    told = re.search(r"data-told>([^<]+)<", page)[1].replace("\u00a0", " ")
    held = sum(share <= 0.1 for share in shares)
    assert told == (
        f"At 10 % it would hold {held} of the {unknown} nodes of unknown class of run 3; on 380 "
        "validation nodes it held 5.0 % of all and 30.0 % of those that are mule, and 8.0 % of it "
        "was not mule."
    )
    assert 'value="10" data-shares' in page
    promised = unescape(listing.ask("/lists").body.decode())
    assert f"promised, the list holds {len(shares)} of the {unknown} nodes" in promised
    assert f"it would hold about {round(0.3 * unknown)} of" in promised  # beyond what is promised
    assert "This changes no promise" in promised
    cleared = unescape(listing.ask("/lists?list=clear&share=1").body.decode())
    _, of_clear = open_shares(listing, "clear")
    assert f"At 1\u00a0% it would hold {sum(s <= 0.01 for s in of_clear)} of" in cleared


def test_a_curve_of_other_terms_or_of_another_version_is_not_shown(listing, curve):
    settings, asked = listing.dashboard.settings, "/lists?list=investigate"
    measured = "validation nodes it held"
    assert measured in listing.ask(asked).body.decode()
    assert measured not in listing.ask("/lists?list=clear").body.decode()
    for other in (
        replace(CURVE, model="another"),
        replace(CURVE, terms=replace(CURVE.terms, class_="retail")),
        replace(CURVE, terms=replace(CURVE.terms, per="stream")),
    ):
        save_curve(settings, other)
        page = listing.ask(asked).body.decode()
        assert measured not in page
        assert "ringfence advise --list investigate" in page
    (file,) = settings.engine.folder.rglob("lists/investigate.json")
    for damaged in ("", "[]", "{}", '{"rows": 7}', "x" * 200_000):
        file.write_text(damaged)
        assert measured not in listing.ask(asked).body.decode()
    save_curve(settings, replace(CURVE, terms=replace(CURVE.terms, may_be_wrong=0.01)))
    assert measured in listing.ask(asked).body.decode()  # at every share it is the same list
    for wrong in ("share=x", "share=-1", "share=99999", "list=nobody"):
        assert listing.ask(f"/lists?{wrong}").status == 200


def test_the_slider_tells_the_rows_of_the_page(listing, curve, visiting):
    before = listing.ask("/api/v1/lists").body
    with visiting() as seen:
        seen.open(f"{listing.url}/lists?list=investigate")
        page = seen.page
        shares = page.locator("tr[data-share]")
        for place in (0, 3, shares.count() - 1):
            row = shares.nth(place)
            slider = "input[data-shares]"
            page.locator(slider).evaluate(
                "(range, to) => { range.value = to; range.dispatchEvent(new Event('input')) }",
                row.get_attribute("data-share"),
            )
            assert page.inner_text("[data-told]") == row.get_attribute("data-words")
            assert row.get_attribute("aria-current") == "true"
            assert page.locator("tr[data-share][aria-current]").count() == 1
        page.locator("input[data-shares]").focus()
        page.keyboard.press("Home")
        assert page.inner_text("[data-told]") == shares.first.get_attribute("data-words")
        page.select_option("select[name=list]", "clear")
        page.wait_for_url("**/lists?list=clear*")
        assert "validation nodes" not in page.inner_text("[data-told]")
        assert seen.problems == []
    assert listing.ask("/api/v1/lists").body == before
