"""Lists on their page, in the API, as CSV and in the metrics."""

import csv
import io
import json
from urllib.parse import urlencode

import pytest

from ringfence.jobs.samples.audit_store import Plan
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
    text = listing.ask("/metrics").body.decode()
    (line,) = [
        line
        for line in text.splitlines()
        if line.startswith("ringfence_list_wrong_ratio{") and 'list="clear"' in line
    ]
    assert float(line.split()[-1]) == pytest.approx(total["pooled"])


def test_without_lists_the_page_says_how_to_get_one(site):
    assert "Add a [[lists]] table" in site.ask("/lists").body.decode()
    assert json.loads(site.ask("/api/v1/lists").body) == []


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
