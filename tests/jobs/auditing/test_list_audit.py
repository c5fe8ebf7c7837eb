"""The realised share of wrong nodes of lists: which counts make it, and which wait."""

import json
from collections import Counter
from contextlib import closing

import pytest
from sqlalchemy import event, select, text

from ringfence.connector.list_terms import THEOREM, ListFacts, ListTerms
from ringfence.connector.store.alarms import AlarmFacts, _facts
from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tables import grouping, prediction
from ringfence.connector.store.worklist.list_counts import ListCount
from ringfence.connector.store.worklist.listed_nodes import ListedRun
from ringfence.connector.store.worklist.marks import record_mark
from ringfence.jobs.auditing.alarms import rules
from ringfence.jobs.auditing.list_audit import audit_lists, audit_runs
from ringfence.jobs.config.alarms import AlarmSettings
from ringfence.jobs.project.audit_store import key_source, open_audit
from ringfence.jobs.samples.audit_store import fill_store
from ringfence.jobs.views.status import read_status
from tests.dashboard.conftest import settings_at
from tests.jobs.report.packs import LISTS, PLAN, make_record

TERMS = ListTerms("look", "mule", False, 0.2, "stream")
PER_RUN = ListTerms("look", "mule", False, 0.2, "run")
DAY_NS = 86_400 * 10**9


def run(seq, listed=10):
    facts = ListFacts(TERMS, 100, 50, 0.5, 1, listed, THEOREM, "")
    return ListedRun(seq, seq * DAY_NS, "v", 100, (facts,))


def count(seq, label, nodes, sampled=False, group=""):
    return ListCount(seq, "look", label, sampled, nodes, group)


RUNS = [run(1), run(2), run(3, 0)]
COUNTS = [count(1, "mule", 8), count(1, "retail", 1), count(1, None, 1), count(2, "retail", 4),
          count(2, None, 6)]  # fmt: skip


def rows(*args, **kwargs):
    return {(row.slice, row.seq, row.group): row for row in audit_runs(*args, **kwargs)}


def test_a_run_that_waits_counts_in_no_verdict_but_in_the_counts():
    judged = rows(RUNS, COUNTS)["total", 3, ""]
    waiting = rows(RUNS, COUNTS, {2})["total", 3, ""]
    assert (judged.known, judged.false, judged.early) == (13, 5, 0)
    assert (waiting.known, waiting.false, waiting.early) == (13, 5, 4)
    assert judged.pooled == 5 / 13
    assert waiting.pooled == 1 / 9
    assert "4 known nodes of runs whose classes are a choice do not count" in waiting.words


def test_a_run_of_which_every_listed_node_is_known_counts_although_it_waits():
    whole = [*COUNTS[:3], count(2, "retail", 10)]
    assert rows(RUNS, whole, {2})["total", 3, ""].pooled == 11 / 19


def test_every_run_and_every_group_has_a_row_and_groups_are_never_broken():
    of_group = [count(1, "retail", 30, group="region=north"), count(1, "mule", 9, group="region=s")]
    found = rows(RUNS, COUNTS, groups=of_group, every_run=True)
    assert {seq for slice_, seq, _ in found if slice_ == "run"} == {1, 2, 3}
    assert found["run", 3, ""].empty == 1
    north = found["group", 3, "region=north"]
    assert (north.verdict, north.false) == ("watch", 30)
    assert north.words.startswith("list look in region=north: watch;")
    assert ("run", 1, "") not in rows(RUNS, COUNTS)


def test_the_sample_is_counted_by_itself_and_waits_for_nobody():
    drawn = [count(1, "retail", 12, sampled=True), count(2, "mule", 3, sampled=True)]
    row = rows(RUNS, [*COUNTS, *drawn], {1, 2})["sample", 3, ""]
    assert (row.listed, row.known, row.false, row.verdict) == (15, 15, 12, "broken")
    assert row.words.startswith("of the audit sample: list look: broken")
    assert ("sample", 3, "") not in rows(RUNS, COUNTS)


def run_of(seq, listed=10):
    """A run whose list promises an average over runs."""
    facts = ListFacts(PER_RUN, 100, 50, 0.5, 1, listed, THEOREM, "")
    return ListedRun(seq, seq * DAY_NS, "v", 100, (facts,))


def mean_by_the_old_rule(runs, counts):
    """Red control: a list counts as empty where the row has no node of it, and at once."""
    nodes = {run.seq: [it for it in counts if it.seq == run.seq] for run in runs}
    shares = []
    for of_run in nodes.values():
        known = sum(it.nodes for it in of_run if it.label)
        wrong = sum(it.nodes for it in of_run if it.label == "retail")
        if known or not of_run:
            shares.append(wrong / known if known else 0.0)
    return sum(shares) / len(shares)


def test_per_run_lists_outside_the_sample_are_not_empty():
    """Every fourth list has a sampled node, 60 % of these are wrong, and no list is empty."""
    runs = [run_of(seq) for seq in range(1, 81)]
    counts = [
        item
        for seq in range(4, 81, 4)
        for item in (count(seq, "retail", 6, sampled=True), count(seq, "mule", 4, sampled=True))
    ]
    row = rows(runs, counts)["sample", 80, ""]
    assert (row.empty, row.verdict, row.mean_of_runs) == (0, "broken", pytest.approx(0.6))
    assert mean_by_the_old_rule(runs, counts) == pytest.approx(0.15)


def test_per_run_empty_lists_count_when_lists_that_hold_nodes_do():
    """Every second list is empty; classes are known of the first 200 of 600 runs alone."""
    runs = [run_of(seq, 10 * (seq % 2)) for seq in range(1, 601)]
    counts = []
    for seq in range(1, 601, 2):
        known = [count(seq, "retail", 6), count(seq, "mule", 4)]
        counts += known if seq < 200 else [count(seq, None, 10)]
    row = rows(runs, counts)["total", 600, ""]
    assert (row.empty, row.verdict) == (300, "broken")
    assert row.mean_of_runs == pytest.approx(0.6 * 100 / 199)
    assert mean_by_the_old_rule(runs, counts) == pytest.approx(0.15)


def test_per_run_a_run_that_waits_is_no_basis_of_an_average():
    runs = [run_of(seq) for seq in (1, 2, 3)]
    counts = [count(1, "mule", 9), count(1, "retail", 1), count(2, "retail", 2), count(2, None, 8)]
    assert rows(runs, counts)["total", 3, ""].mean_of_runs > 0.5
    assert rows(runs, counts, {2})["total", 3, ""].mean_of_runs == pytest.approx(0.1)
    waiting = rows(runs, counts, {1, 2})["window", 3, ""]
    waiting_too = rows(runs, counts[2:], {2})["total", 3, ""]
    assert waiting.mean_of_runs == pytest.approx(0.1)  # run 1 is known whole
    assert waiting_too.mean_of_runs is None
    assert "no run counts yet; at most 20 % promised on average over runs" in waiting_too.words


def test_per_run_a_group_is_judged_by_the_runs_that_listed_somebody_of_it():
    runs = [run_of(seq) for seq in range(1, 41)]
    of_group = [count(seq, "retail", 5, group="region=north") for seq in range(4, 41, 4)]
    row = rows(runs, [count(1, "mule", 10)], groups=of_group)["group", 40, "region=north"]
    assert (row.mean_of_runs, row.verdict) == (1.0, "watch")


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return make_record(tmp_path_factory.mktemp("lists"))


def test_sql_counts_what_the_rows_say(settings):
    with open_audit(settings) as store:
        queries = ProjectQueries(store, settings.project)
        listed = queries.rows(
            select(prediction, grouping.c.value)
            .join(grouping, grouping.c.node_key == prediction.c.node_key)
            .where(prediction.c.lists.is_not(None))
        )
        found = audit_lists(store, settings.project, detail=True)
    total = next(row for row in found if row.slice == "total")
    known = [row["label"] for row in listed if row["label"]]
    assert all("investigate" in json.loads(row["lists"]) for row in listed)
    assert (total.listed, total.known) == (len(listed), len(known))
    assert total.false == sum(label != "mule" for label in known)
    by_run = Counter(row["seq"] for row in listed)
    assert {row.seq: row.listed for row in found if row.slice == "run"} == {
        seq: by_run[seq] for seq in range(1, 5)
    }
    by_group = Counter(f"region={row['value']}" for row in listed)
    assert {row.group: row.listed for row in found if row.slice == "group"} == by_group
    sampled = next(row for row in found if row.slice == "sample")
    assert sampled.listed == sum(row["sampled"] for row in listed)


def alarm(store, project):
    with store.reading() as connection:
        return rules.RULES["lists"](_facts(connection, project, 0), AlarmSettings())


def test_the_alarm_fires_when_listed_nodes_turn_out_wrong_and_not_before(tmp_path):
    """The control is the same record before its classes are changed."""
    settings = make_record(tmp_path)
    with open_audit(settings) as store:
        before = alarm(store, settings.project)
        assert before.holds is False
        assert "list investigate: kept" in before.sentence
        with store.transaction() as connection:
            connection.execute(
                text("UPDATE prediction SET label = 'retail' WHERE lists IS NOT NULL")
            )
        after = alarm(store, settings.project)
        assert after.holds is True
        assert "list investigate: broken" in after.sentence
        said = read_status(store, settings.project)
        assert {row.slice for row in said.lists} >= {"total", "sample"}
        assert said.as_json()["lists"][0]["verdict"] == "broken"


def test_no_alarm_without_lists():
    facts = AlarmFacts(None, (), None, None, {}, 0)
    assert rules.RULES["lists"](facts, AlarmSettings()) is None


def test_listed_nodes_are_read_once_for_all_lists_and_again_when_the_chain_has_grown(tmp_path):
    lists = [*LISTS, {"name": "clear", "not": "mule", "may_be_wrong": 0.1}]
    settings = settings_at(tmp_path, audit={"groups": ["region"], "sample_nodes": 7}, lists=lists)
    with closing(open_store(settings.audit.url)) as store:
        fill_store(store, settings, PLAN)
        scans = []
        event.listen(
            store.engine,
            "before_cursor_execute",
            lambda _c, _cursor, said, *_: scans.append(said) if "FROM prediction" in said else None,
        )
        first = audit_lists(store, settings.project)
        assert {row.terms.name for row in first} == {"investigate", "clear"}
        assert len(scans) == 1
        assert audit_lists(store, settings.project) == first
        assert len(scans) == 1
        with store.reading() as connection:
            key = connection.execute(select(prediction.c.node_key)).scalars().first()
        record_mark(store, settings.project, key_source(settings), key, "ada", "note", "seen")
        scans.clear()
        assert audit_lists(store, settings.project) == first
        assert len(scans) == 1
