"""Lists on their page, in the API, as CSV and in the metrics."""

import json

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
