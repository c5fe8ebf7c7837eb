"""The story of a model's life: what it counts and says; the whole of it is in tests/end_to_end."""

from ringfence.connector.alarm_records import AlarmState
from ringfence.jobs.cli.story_view import StoryConsoleView
from ringfence.jobs.integrity.verify import Verification
from ringfence.jobs.lifecycle.promotion import PromotionReport
from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary
from ringfence.jobs.samples import story
from ringfence.jobs.samples.payments import STORY_TOML
from ringfence.jobs.samples.story import BATCHES, Chapter, StoryReport


def chapter(name, version, covered):
    return Chapter(name, version, (2, 3), 100, 80, covered, 1.5, "kept")


def shadow(**values):
    nothing = dict.fromkeys(
        ("coverage", "active_coverage", "coverage_difference", "mean_size", "active_mean_size",
         "size_difference", "failed")
    )  # fmt: skip
    return ShadowSummary(
        **nothing | {"version": "v2", "runs": 2, "nodes": 90, "known": 80, "last_run": 8} | values
    )


def test_a_chapter_adds_up_the_runs_that_it_is_about(monkeypatch):
    class Row:
        def __init__(self, seq, slice_, evaluated, known, covered, size):
            self.seq, self.slice, self.evaluated, self.known = seq, slice_, evaluated, known
            self.covered, self.mean_size, self.model, self.verdict = covered, size, "v1", "kept"

    class Audit:
        rows = (
            Row(1, "run", 50, 40, 1, 9.0),  # of another chapter
            Row(2, "run", 10, 8, 8, 1.0),
            Row(3, "run", 30, 24, 16, 2.0),
            Row(3, "total", 90, 72, 25, 5.0),
        )

    found = story._count("drift", [2, 3], Audit)
    assert (found.evaluated, found.known, found.covered) == (40, 32, 24)
    assert (found.coverage, found.mean_size, found.version) == (0.75, 1.75, "v1")


def test_the_reason_of_the_promotion_is_what_the_shadow_shows():
    said = story._reason_of(shadow(coverage=0.9, active_coverage=0.625))
    assert "90.0 % of 80 known accounts, the version in use 62.5 %" in said
    assert story._reason_of(shadow()) == "the alarm of drift"


def test_the_configuration_leaves_nothing_but_the_version_to_bring_coverage_back():
    import tomllib

    values = tomllib.loads(STORY_TOML)
    assert values["conformal"]["calibration_set"] == "frozen"
    assert values["retrain"] == {"when": ["alarm"], "promote": "manual"}
    assert values["model"]["shadow"] is True
    assert "columns" not in str(values["graph"]["relationships"])  # amounts do not drift
    assert BATCHES["drift"] >= 2  # the alarm needs a run after the first classes are known


def test_every_step_is_said_in_words(tmp_path, capsys):
    view = StoryConsoleView(tmp_path)
    report = StoryReport(
        folder=str(tmp_path),
        first=type("T", (), {"version": "v1"})(),
        alarms=(AlarmState("drift", "firing", "exchangeability is broken", 5),),
        candidate=None,
        shadow=shadow(),
        promotion=PromotionReport("v2", "v1", "promoted", "covers more", True, (), 0),
        rollback=PromotionReport("v1", "v2", "rolled back", "drill", True, (), 0),
        chapters=(chapter("drift", "v1", 40), chapter("promoted", "v2", 72)),
        twice=0,
        verification=Verification(9, 3, 200, 9, ("run 2: threshold differs",)),
    )
    view.drift_begins()
    view.alarmed(report.alarms, "the alarm drift fires")
    view.alarmed((), "no alarm of drift fires")
    view.taken_into_use(report.promotion)
    view.chapter(report.chapters[1])
    view.taken_into_use(report.rollback)
    view.finished(report)
    said = " ".join(capsys.readouterr().out.split())
    for words in (
        "2. Drift.", "3. Alarm. drift: exchangeability is broken.", "3. No alarm fires.",
        "7. Promotion. v2 is in use. On record: covers more.",
        "8. After the promotion.", "90.0 % of these sets hold it: kept.",
        "9. Rollback. v1 is in use again. On record: drill.", "50.0 %",
        "run 2: threshold differs",  # a record that was changed is not called clean
    ):  # fmt: skip
        assert words in said
