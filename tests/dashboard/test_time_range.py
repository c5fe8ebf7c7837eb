"""Dates on the axes, a range of time in the address, and naive coverage with its size beside it."""

import csv
import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ringfence.connector.store.queries.span import find_entries, find_span
from ringfence.jobs.samples.audit_store import Plan
from ringfence.jobs.views.tables import TABLES
from tests.dashboard.conftest import open_site, settings_at

DAY_NS = 86_400 * 10**9
DATED = ("/", "/coverage", "/thresholds", "/drift", "/runs", "/trail")


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    """A project with 60 runs, a week apart, the last one now."""
    settings = settings_at(tmp_path_factory.mktemp("year"))
    with open_site(settings, Plan(runs=60, per_run=12, days_apart=7.0)) as opened:
        yield opened


def day(back):
    return (datetime.now(UTC) - timedelta(days=back)).date().isoformat()


def figures(site, path):
    body = site.ask(path).body.decode()
    found = re.findall(r'type="application/json" id="d-([\w-]+)">(.*?)</script>', body, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def test_every_chart_over_runs_has_dates_and_names_its_runs(year):
    over_runs = 0
    for path in DATED:
        for name, figure in figures(year, path).items():
            panel = figure["panels"][0]
            if name == "scores":  # over the score, not over time
                assert not panel["dates"]
                continue
            over_runs += 1
            assert panel["dates"], name
            assert panel["x_label"] == "time (UTC), a point per run"
            line = panel["lines"][0]
            assert line["names"][-1] == "run 60"
            weeks = (line["x"][-1] - line["x"][-2]) / (7 * 86_400_000)
            assert weeks == pytest.approx(1.0, abs=0.01)
    assert over_runs >= 10


def test_a_range_in_the_address_moves_charts_tables_and_csv_together(year):
    span = f"from={day(100)}&until={day(30)}"
    x = figures(year, f"/coverage?{span}")["coverage"]["panels"][0]["lines"][0]
    assert 9 <= len(x["names"]) <= 11
    assert x["names"][-1] in {"run 55", "run 56"}
    body = year.ask(f"/runs?{span}").body.decode()
    listed = [int(seq) for seq in re.findall(r'<td><a href="/runs/(\d+)">', body)]
    assert listed == sorted(listed, reverse=True)
    assert [f"run {seq}" for seq in reversed(listed)] == x["names"]
    assert f"{len(listed)} of 60 runs." in body
    assert f'href="/csv/runs?from={day(100)}&amp;until={day(30)}"' in body
    rows = list(csv.DictReader(io.StringIO(year.ask(f"/csv/runs?{span}").body.decode())))
    assert [int(row["run"]) for row in rows] == listed
    whole = list(csv.DictReader(io.StringIO(year.ask("/csv/runs").body.decode())))
    assert len(whole) == 60  # the control: without a range all are there


def test_the_verdict_of_today_is_of_all_runs_whatever_the_range(year):
    def verdict(path):
        return re.search(r'<ol class="today".*?</li>', year.ask(path).body.decode(),
                         re.DOTALL)[0]  # fmt: skip

    assert verdict("/") == verdict(f"/?from={day(2)}") == verdict("/?until=2001-01-01")
    assert "No run was decided in this time." in year.ask("/?until=2001-01-01").body.decode()


def test_days_that_can_t_be_read_are_named(year):
    for wrong in ("from=yesterday", "until=9999-12-31", "from=0001-01-01", "until=2300-01-01",
                  "from=%01", "from=2026-13-01"):  # fmt: skip
        for path in (*DATED, "/csv/runs"):
            answer = year.ask(f"{path}?{wrong}")
            assert answer.status == 400, (path, wrong)
            assert b"a day such as" in answer.body
    assert year.ask("/coverage?from=&until=").status == 200


def test_a_long_history_is_spread_over_the_range_and_ends_with_its_last_run(year):
    queries = year.dashboard.queries.within(None, None)
    spread = replace(queries, max_rows=10, spread=True)
    assert [run.seq for run in spread.runs()] == [6, 12, 18, 24, 30, 36, 42, 48, 54, 60]
    assert [row.seq for row in spread.coverage("run")] == [run.seq for run in spread.runs()]
    newest = replace(queries, max_rows=10)
    assert [run.seq for run in newest.runs()] == list(range(51, 61))


def test_chain_entries_of_a_range_are_found_by_halves(year):
    queries = year.dashboard.queries
    chain = queries.whole_chain()
    with queries.store.reading() as connection:
        for place in (0, 1, len(chain) // 2, len(chain) - 1):
            at_ns = chain[place].at_ns
            expected = [entry.n for entry in chain if entry.at_ns >= at_ns]
            span = find_span(connection, queries.project, at_ns, None)
            first, end = find_entries(connection, queries.project, span)
            assert list(range(first, end)) == expected
        nothing = find_span(connection, queries.project, chain[-1].at_ns + DAY_NS, None)
        first, end = find_entries(connection, queries.project, nothing)
        assert first >= end


def test_a_person_picks_a_range_without_typing_an_address(year, visiting):
    with visiting(viewport={"width": 1366, "height": 900}) as seen:
        seen.open(year.url + "/coverage")
        seen.page.click(".presets >> text=30 days")
        seen.page.wait_for_url("**/coverage?from=*")
        assert "5 of 60 runs." in seen.page.inner_text(".range")
        assert seen.page.input_value("input[name=from]") == day(29)
        seen.page.fill("input[name=from]", day(60))
        seen.page.fill("input[name=until]", day(20))
        seen.page.click("text=Show this time")
        seen.page.wait_for_url(f"**from={day(60)}**")
        assert "6 of 60 runs." in seen.page.inner_text(".range")
        assert seen.problems == []


def test_naive_coverage_has_its_size_beside_it_or_does_not_stand(year):
    rows = TABLES["coverage-run"].read(year.dashboard.queries).rows
    assert all(row["naive_coverage"] is not None and row["mean_size_naive"] > 0 for row in rows)
    chosen = year.ask("/coverage?columns.coverage-run=naive_coverage").body.decode()
    table = re.search(r'id="coverage-run">.*?</table>', chosen, re.DOTALL)[0]
    headings = re.findall(r'<th scope="col".*?>(naive \w+)', table)
    assert headings == ["naive covered", "naive size"]
    # the control: a run of a version that did not record it
    from ringfence.jobs.views.tables.coverage import coverage_cells

    old = replace(year.dashboard.queries.coverage("run")[0], mean_size_naive=None)
    assert coverage_cells(old)["naive_coverage"] is None
    run = year.dashboard.queries.run(3)
    from ringfence.jobs.views.outcome import run_figures

    notes = {one.name: one.note for one in run_figures(run, old)}
    assert notes["naive set size"] == ""


def test_the_mean_size_of_naive_sets_is_counted_over_runs(year):
    totals = year.dashboard.queries.coverage("total")
    runs = {row.seq: row for row in year.dashboard.queries.coverage("run")}
    mean = sum(row.mean_size_naive * row.evaluated for row in runs.values()) / totals[-1].evaluated
    assert totals[-1].mean_size_naive == pytest.approx(mean)
    assert {row.mean_size_naive for row in year.dashboard.queries.named("class")} == {None}
