"""Marks of changes, as a browser draws them on charts."""

from ringfence.jobs.samples.audit_store import Plan
from tests.dashboard.conftest import open_site, settings_at
from tests.jobs.views.test_change_marks import insert_activation


def test_a_browser_draws_the_letters(tmp_path, visiting):
    with open_site(settings_at(tmp_path), Plan(runs=5, per_run=40, days_apart=1.0)) as site:
        runs = site.dashboard.queries.runs()
        insert_activation(site.dashboard.store, runs[2].decided_ns, "promoted")
        with visiting() as seen:
            seen.open(site.url + "/coverage")
            letters = seen.page.locator(".chart .annotation").all_text_contents()
            assert [letter.strip() for letter in letters] == ["P"] * 3
            assert "P marks a promotion" in seen.page.inner_text("main")
            assert seen.problems == []
