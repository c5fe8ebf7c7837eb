"""The report: one small HTML file that loads nothing, and the same as CSV, JSON and Parquet."""

import json

from pyarrow import parquet

from ringfence.jobs.report.write import run_report
from ringfence.jobs.views.tables import TABLES


def test_the_report_is_one_small_file_that_loads_nothing(site, visiting, tmp_path):
    done = run_report(site.dashboard.settings, tmp_path, ("html", "csv", "json", "parquet"))
    page = tmp_path / "report.html"
    assert page.stat().st_size < 300_000
    with visiting() as seen:
        seen.page.goto(page.as_uri())
        assert seen.requests == [page.as_uri()]
        assert seen.problems == []
        assert seen.page.evaluate("window.hit") is None
        assert seen.page.locator("svg").count() >= 6
        shown = seen.page.inner_text("body")
        pdf = seen.page.pdf(path=tmp_path / "report.pdf")
        assert pdf.startswith(b"%PDF")
    body = json.loads((tmp_path / "report.json").read_text())
    assert " ".join(body["verdict"]["words"].split()[1:4]) in shown
    rows = parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    assert [row["seq"] for row in rows] == [row["seq"] for row in body["tables"]["runs"]]
    assert len((tmp_path / "classes.csv").read_text().splitlines()) == 5
    assert len(done.files) == 2 + 2 * len(TABLES)
