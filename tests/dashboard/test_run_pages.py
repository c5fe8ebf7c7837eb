"""The Run page and the comparison of two runs are about outcomes; the record is folded away."""

import html
import re

import pytest
from sqlalchemy import text

from ringfence.connector.store.queries import outcome
from ringfence.connector.store.queries.outcome import class_outcomes
from ringfence.jobs.dashboard.pages import run as run_page
from ringfence.jobs.samples.audit_store import Plan
from tests.dashboard.conftest import open_site, settings_at


@pytest.fixture(scope="module")
def payments(tmp_path_factory):
    settings = settings_at(tmp_path_factory.mktemp("payments"))
    with open_site(settings, Plan(runs=3, per_run=50, days_apart=1.0)) as opened:
        yield opened


def page_text(site, path):
    body = site.ask(path).body.decode()
    folded = re.sub(r"<details.*?</details>", "", body, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", folded)).split()), body


def test_a_run_s_page_has_its_outcome_before_and_its_record_folded(payments):
    said, body = page_text(payments, "/runs/2")
    counted = payments.dashboard.queries.coverage_of_run(2)
    for fact in (f"{100 * counted.coverage:.1f} %", f"{counted.mean_size:.4g}", "Sizes of the sets",
                 "mule", counted.verdict, "Compare with run 1"):  # fmt: skip
        assert fact in said, fact
    assert "watermark" not in said
    assert "watermark" in body
    assert "software" not in said


def test_classes_of_a_run_are_counted_as_its_predictions_say(payments):
    queries = payments.dashboard.queries
    rows = {one.name: one for one in class_outcomes(queries, 2)}
    with queries.store.reading() as connection:
        sets = connection.execute(
            text("SELECT classes, label, covered FROM prediction WHERE seq = 2")
        )
        sets = list(sets)
    for name, row in rows.items():
        assert row.in_sets == sum(f'"{name}"' in one.classes for one in sets)
        assert row.alone == sum(one.classes == f'["{name}"]' for one in sets)
        assert row.known == sum(one.label == name for one in sets)
        assert row.covered == sum(one.label == name and one.covered == 1 for one in sets)
    assert sum(row.known for row in rows.values()) == queries.coverage_of_run(2).known


def test_a_class_of_a_run_leads_to_its_nodes(payments, visiting):
    with visiting() as seen:
        seen.open(payments.url + "/runs/2")
        row = seen.page.locator("main tr", has_text="mule").first
        count = int(row.locator("a").inner_text().split()[0])
        row.locator("a").click()
        seen.page.wait_for_url("**/worklist?**run=2**")
        assert seen.page.locator("tbody tr").count() == count
        assert seen.problems == []


def test_a_run_that_is_too_large_is_not_counted_for_a_page(payments, monkeypatch):
    monkeypatch.setattr(run_page, "MAX_COUNTED_NODES", 10)
    said, _ = page_text(payments, "/runs/2")
    assert "more than 10 nodes is not counted by class" in said
    assert outcome.MAX_COUNTED_NODES == 50_000


def test_two_runs_stand_side_by_side_with_what_changed(payments):
    said, body = page_text(payments, "/runs/compare?a=1&b=3")
    one, three = (payments.dashboard.queries.coverage_of_run(seq) for seq in (1, 3))
    change = 100 * (three.coverage - one.coverage)
    sign = "+" if change > 0 else "−"
    for fact in (f"{100 * one.coverage:.1f} %", f"{100 * three.coverage:.1f} %",
                 f"{sign}{abs(change):.1f} points", "in sets, run 1", "Seconds per step",
                 "by the same settings and the same model"):  # fmt: skip
        assert fact in said, fact
    assert "watermark" not in said
    assert "Every field of the record that differs" in body


def test_the_trail_begins_with_time_and_actor(payments):
    body = payments.ask("/trail").body.decode()
    head = re.search(r'id="chain">.*?<thead>(.*?)</thead>', body, re.DOTALL)[1]
    assert re.findall(r">(\w[\w ]*)</a>", head) == ["at", "by", "what", "entry"]
    first = re.search(r"<tbody>\s*<tr>(.*?)</tr>", body, re.DOTALL)[1]
    assert re.search(r"<td>20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ</td>", first)
    assert "on " in first
    assert "process" in first


def test_today_and_the_run_say_how_late_classes_come(payments):
    for path in ("/", "/runs/2"):
        said, _ = page_text(payments, path)
        assert "lasses usually come 1 run late; calibration is frozen and waits for none" in said


def test_picture_sentence_and_verdict_agree_where_no_verdict_can_be_given(tmp_path):
    """No bound is drawn that decides nothing; with a verdict it is, which is the control."""
    with open_site(settings_at(tmp_path), Plan(runs=3, per_run=50, days_apart=1.0)) as site:
        before, drawn = page_text(site, "/coverage")
        assert "Below the anytime bound coverage falls" in before
        assert "no anytime bound is drawn" not in before
        reason = "no verdict: 90 % of 90 known nodes; no verdict over many runs: the level swings"
        unsound = "UPDATE coverage SET verdict = 'no verdict', words = :words WHERE slice = 'total'"
        with site.dashboard.queries.store.transaction() as connection:
            connection.execute(text(unsound), {"words": reason})
        said, body = page_text(site, "/coverage")
    assert "Below the anytime bound coverage falls" not in said
    assert "so no anytime bound is drawn" in said
    assert drawn.count("anytime bound&#34;") + drawn.count('anytime bound"') > (
        body.count("anytime bound&#34;") + body.count('anytime bound"')
    )
    assert "no verdict" in said
