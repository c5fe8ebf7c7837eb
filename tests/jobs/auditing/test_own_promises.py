"""Classes and groups with a promise of their own: verdicts, alarms, metrics and pages."""

from dataclasses import replace

import pytest

from ringfence.connector.store.engine import dumps, open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.connector.store.thresholds.strata import StratumCounts
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.jobs.cli.commands.runs.status import print_status
from ringfence.jobs.config.load import load_values
from ringfence.jobs.dashboard.metrics import exposition
from ringfence.jobs.dashboard.pages import classes as classes_page
from ringfence.jobs.dashboard.pages import today
from ringfence.jobs.report.page import html
from ringfence.jobs.samples.audit_store import Plan, fill_store
from ringfence.jobs.views.status import read_status
from tests.dashboard.whole_view import whole_view

MISSED = Plan(runs=5, per_run=200, covered=0.95, covered_by_class={"mule": 0.62})


def tally(name="", known=400, covered=360, n=100, **changed):
    counts = dict.fromkeys(COUNTS, 0) | {"evaluated": known, "known": known, "covered": covered}
    counts |= {"unseen": changed.pop("unseen", 0)}
    level = changed.pop("level", 0.1)
    given = {
        "strata": ((StratumCounts(n, float(n), level, known, covered, name),),),
        "promise": "class",
    }
    values = {
        "seq": 1, "model": "m", "rule": "auto", "score": "TPS", "alpha": 0.1,
        "options": dumps({"promise": "class"}), "n_calibration": 1000,
        "effective_calibration": 1000.0, "name": name, "counts": counts,
        "sums": dict.fromkeys(SUMS, 0.0),
    }  # fmt: skip
    return Tally(**values | given | changed)


def class_row(one, slice_="class"):
    parts = {"class": ((one,), ()), "group": ((), (one,))}[slice_]
    rows = coverage_rows([replace(one, name="")], *parts, window=1)
    return [row for row in rows if row.slice == slice_]


def test_a_promised_class_can_be_broken_and_one_without_a_promise_is_watched():
    missed = tally("mule", covered=270)
    (promised,) = class_row(missed)
    assert (promised.verdict, promised.own_promise, promised.exact) == ("broken", True, True)
    (marginal,) = class_row(replace(missed, promise="marginal", options="{}"))
    assert (marginal.verdict, marginal.own_promise) == ("watch", False)


def test_a_class_is_judged_by_the_law_of_its_own_calibration_nodes():
    """With ten calibration nodes 79 % covered is usual; with a thousand the promise is broken."""
    (few,) = class_row(tally("mule", covered=316, n=10))
    (many,) = class_row(tally("mule", covered=316, n=1000))
    assert (few.verdict, many.verdict) == ("kept", "broken")
    assert few.low < 0.7 < 0.85 < many.low


def test_a_class_with_an_alpha_of_its_own_is_judged_by_it_and_has_one_row():
    options = dumps({"promise": "class", "classes": {"mule": 0.3}})
    own = tally("mule", covered=290, n=1000, options=options, level=0.3)
    (row,) = class_row(own)
    assert (row.alpha, row.verdict) == (0.3, "kept")
    assert class_row(replace(own, first=False)) == []
    strict = dumps({"promise": "class", "classes": {"mule": 0.01}})
    (row,) = class_row(tally("mule", covered=370, n=1000, options=strict, level=0.01))
    assert (row.alpha, row.verdict) == (0.01, "broken")


def test_all_nodes_together_may_be_missed_as_often_as_their_classes_may():
    options = dumps({"promise": "class", "classes": {"mule": 0.5}})
    strata = (
        (StratumCounts(500, 500.0, 0.5, 300, 150, "mule"), StratumCounts(500, 500.0, 0.1, 100, 90)),
    )
    both = tally(covered=240, options=options, strata=strata)
    (total,) = [row for row in coverage_rows([both], (), (), 1) if row.slice == "total"]
    assert total.verdict == "kept"
    assert "a promise of 60 %" in total.words
    plain = replace(both, options=dumps({"promise": "class"}))
    (control,) = [row for row in coverage_rows([plain], (), (), 1) if row.slice == "total"]
    assert control.verdict == "broken"


def test_a_class_that_the_model_never_saw_has_no_promise():
    (row,) = class_row(tally("new", known=40, covered=0, unseen=40))
    assert (row.own_promise, row.verdict) == (False, "watch")


@pytest.mark.parametrize(("name", "own"), [("region=north", True), ("product=card", False)])
def test_only_groups_by_the_promised_property_have_a_promise(name, own):
    options = dumps({"promise": "group", "group": "region"})
    (row,) = class_row(tally(name, covered=270, promise="group", options=options), "group")
    assert (row.own_promise, row.verdict) == (own, "broken" if own else "watch")


@pytest.fixture
def settings(tmp_path):
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
    }
    return load_values(values, tmp_path / "ringfence.toml", {})


@pytest.fixture
def store(settings):
    opened = open_store(settings.audit.url)
    yield opened
    opened.close()


def shown(store, settings, plan, capsys):
    fill_store(store, settings, plan)
    queries = ProjectQueries(store, "p")
    print_status(read_status(store, "p"))
    return {
        "today": today.build(whole_view(queries)),
        "classes": classes_page.build(whole_view(queries)),
        "alarms": {alarm.rule: alarm for alarm in queries.alarms()},
        "metrics": exposition(queries).decode(),
        "status": " ".join(capsys.readouterr().out.split()),
        "report": html(queries, "", 0),
        "verdict": queries.verdict(),
    }


def test_a_missed_rare_class_turns_today_red_where_it_was_promised_something(
    store, settings, capsys
):
    found = shown(store, settings, replace(MISSED, promise="class"), capsys)
    assert found["today"]["lines"][0].word == "broken"
    assert "of class mule" in found["today"]["lines"][0].headline
    assert found["alarms"]["classes"].state == "firing"
    assert "mule" in found["alarms"]["classes"].words
    assert "groups" not in found["alarms"]
    assert (
        'ringfence_class_verdict{class="mule",project="p",verdict="broken"} 1.0'
        in (found["metrics"])
    )
    assert 'ringfence_class_promised_ratio{class="mule",project="p"} 0.9' in found["metrics"]
    assert "at most 10 % of each class are missed" in found["classes"]["lead"][0]
    assert "each has a promise of its own" in found["status"]
    assert "Class mule: broken" in found["status"]
    assert "Class mule: broken" in found["report"]
    assert "at most 10 % of each class are missed" in found["report"]


def test_the_same_misses_leave_today_green_under_a_promise_for_all_nodes(store, settings, capsys):
    """The control: the average hides the rare class."""
    found = shown(store, settings, replace(MISSED, covered=1.0), capsys)
    assert found["today"]["lines"][0].word == "kept"
    assert "classes" not in found["alarms"]
    assert "ringfence_class_verdict" not in found["metrics"]
    assert "for all nodes together" in found["classes"]["lead"][0]
