"""The audit sample on Today and in the worklist, as CSV, in the API and as metrics."""

import csv
import io
import json
import re
from urllib.parse import quote

import pytest

from ringfence.connector.store.queries.sample import SampleFilter, read_sample
from ringfence.jobs.samples.audit_store import Plan
from tests.dashboard.conftest import open_site, settings_at


@pytest.fixture(scope="module")
def sampling(tmp_path_factory):
    """Four runs of 90 that drew 60 nodes each; the classes of the first three are known."""
    audit = {"groups": ["region"], "sample_nodes": 60}
    settings = settings_at(tmp_path_factory.mktemp("sampling"), audit=audit)
    plan = Plan(runs=4, per_run=90, known_runs=3, known=1.0, prefix="<b>account ")
    with open_site(settings, plan) as opened:
        yield opened


def test_today_shows_the_sample_first_and_only_where_there_is_one(sampling, site):
    body = sampling.ask("/").body.decode()
    places = [
        body.index(words) for words in ("for the audit sample", 'class="today"', 'class="facts"')
    ]
    assert places == sorted(places)
    sections = re.findall(r'<section class="verdict [^"]*"( id="sample")?', body)
    assert sections == [' id="sample"']
    assert "runs up to 3" in body  # the newest run with a verdict
    assert "Please find out these classes" in body
    assert "audit sample" not in site.ask("/").body.decode()


def test_pages_and_csv_of_the_sample_hold_every_open_node_once_without_its_set(sampling):
    address, keys = "/worklist?sample=1", []
    while address:
        answer = sampling.ask(address)
        assert answer.status == 200
        body = answer.body.decode()
        assert "p-value" not in body
        keys += re.findall(r'<th scope="row"><a href="/node\?key=([^"]+)"', body)
        more = re.search(r'class="button" href="([^"]+)">Next', body)
        address = more and more[1].replace("&amp;", "&")
    whole = read_sample(sampling.dashboard.queries, SampleFilter(), rows=None)
    assert len(whole) == 60
    assert keys == [quote(node.node_key, safe="/") for node in whole]
    text = sampling.ask("/csv/worklist?sample=1").body.decode()
    assert [row["node"] for row in csv.DictReader(io.StringIO(text))] == [n.key for n in whole]
    assert "<b>account" not in sampling.ask("/worklist?sample=1").body.decode()


def test_the_choice_of_classes_leads_to_the_sample(sampling, site):
    assert "60 of 240" in re.sub(r"<[^>]+>", "", sampling.ask("/worklist").body.decode())
    assert "sample=1" not in site.ask("/worklist").body.decode()


@pytest.mark.parametrize("query", ["run=x", "known=maybe", "state=lost", "after=x%20y", "run=-1"])
def test_a_filter_that_cannot_be_read_is_refused(sampling, query):
    assert sampling.ask(f"/worklist?sample=1&{query}").status == 400
    assert sampling.ask(f"/csv/worklist?sample=1&{query}").status == 400


def test_the_api_and_metrics_have_the_sample_where_coverage_is(sampling, site):
    told = json.loads(sampling.ask("/api/v1/status").body)["sample"]
    assert (told["nodes"], told["unknown"]) == (240, 60)
    rows = json.loads(sampling.ask("/api/v1/coverage/sample").body)
    assert {row["name"] for row in rows} == {"", "last 90 days"}
    assert rows[-2]["evaluated"] == 240
    metrics = sampling.ask("/metrics").body.decode()
    assert re.search(r"ringfence_sample_unknown_nodes\{[^}]*\} 60.0", metrics)
    assert 'verdict="kept"' in re.findall(r"ringfence_sample_verdict\{.*1\.0", metrics)[0]
    assert json.loads(site.ask("/api/v1/status").body)["sample"] is None
    assert "sample_nodes" not in site.ask("/metrics").body.decode()
    assert b"last 90 days" in sampling.ask("/csv/coverage-sample").body
