"""The story as a whole, on a real embedded Neo4j: told twice, its pages, its chain."""

import html
import json

import pytest

from ringfence.jobs.config.load import load
from tests.dashboard.conftest import open_site
from tests.jobs.cli.conftest import ringfence

__all__ = ["ringfence"]  # a fixture

TOLD = ("demo", "--story", "--no-serve", "--nodes", "4000")


@pytest.mark.long
@pytest.mark.neo4j
def test_drift_alarm_candidate_shadow_promotion_coverage_back_and_rollback(ringfence, tmp_path):
    report = json.loads(ringfence(*TOLD, "--json", cwd=tmp_path).stdout)
    first, second = report["first"]["version"], report["promotion"]["version"]
    chapters = {one["name"]: one for one in report["chapters"]}
    coverage = {name: one["covered"] / one["known"] for name, one in chapters.items()}
    assert coverage["before the drift"] > 0.82
    # nothing changed but the accounts
    assert coverage["drift"] < coverage["before the drift"] - 0.08
    assert "drift" in {alarm["rule"] for alarm in report["alarms"]}
    assert "alarm drift fires" in report["candidate"]["words"]
    assert (report["candidate"]["trained"]["version"], report["candidate"]["promoted"]) == (
        second,
        False,
    )
    assert report["shadow"]["coverage"] > report["shadow"]["active_coverage"] + 0.05
    assert coverage["promoted"] > max(0.82, coverage["drift"] + 0.08)
    assert chapters["promoted"]["version"] == second
    assert chapters["promoted"]["verdict"] != "broken"
    assert report["rollback"]["version"] == chapters["rolled back"]["version"] == first
    # the version had brought it back, and nothing else
    assert coverage["rolled back"] < coverage["promoted"] - 0.05
    assert (report["twice"], report["verification"]["problems"]) == (0, [])
    _pages_show_it(tmp_path / ".ringfence/story/ringfence.toml", report)

    said = " ".join(ringfence(*TOLD, cwd=tmp_path).stdout.split())  # the same seed once more
    for one in report["chapters"]:
        share = f"{100 * one['covered'] / one['known']:.1f} %"
        runs = ", ".join(map(str, one["runs"]))
        who = "first" if one["version"] == first else "candidate"
        row = f"{one['name']} {runs} {who} {one['known']:,} {share} {one['mean_size']:.2f}"
        assert f"{row} {one['verdict']}" in said
    for step in ("1. A first model.", "2. Drift.", "3. Alarm.", "4. Retraining.", "5. Comparison",
                 "6. Shadow.", "7. Promotion.", "8. After the promotion.", "9. Rollback.",
                 "10. The record.", "nothing was changed since it was decided"):  # fmt: skip
        assert step in said


def _pages_show_it(config, report):
    with open_site(load(config), None, fill=lambda _store, _settings: None) as site:
        pages = [html.unescape(site.ask(path).body.decode()) for path in ("/models", "/trail", "/")]
    models, trail, today = pages
    for version, state in ((report["first"]["version"], "active"),
                           (report["promotion"]["version"], "retired")):  # fmt: skip
        assert version in models
        assert state in models
    for page in (models, trail):
        assert report["promotion"]["reason"] in page
        assert report["rollback"]["reason"] in page
    assert report["first"]["version"] in today
    assert "exchangeability is broken" in today
