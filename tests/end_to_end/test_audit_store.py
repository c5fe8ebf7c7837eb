"""What an audit writes and pages read, on SQLite and PostgreSQL alike, without a graph."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import select, text

from ringfence.connector.store import coverage, tables
from ringfence.connector.store.audit_chain.configuration import record_change
from ringfence.connector.store.audit_chain.summary import describe_entry
from ringfence.connector.store.chain import chain_key, first_broken
from ringfence.connector.store.lease import acquire, release
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.writer import Writer
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.auditing.audit import AuditReport, count_coverage
from ringfence.jobs.auditing.coverage import last_totals
from ringfence.jobs.cli.commands.runs.status import print_status
from ringfence.jobs.cli.coverage_table import print_coverage
from ringfence.jobs.config.load import load_values
from ringfence.jobs.dashboard.context import Dashboard
from ringfence.jobs.dashboard.metrics import exposition
from ringfence.jobs.dashboard.pages import classes, drift, runs, thresholds, today
from ringfence.jobs.dashboard.pages import comparison as comparison_page
from ringfence.jobs.dashboard.pages import coverage as coverage_page
from ringfence.jobs.dashboard.pages import run as run_page
from ringfence.jobs.dashboard.security import guard_of
from ringfence.jobs.samples.audit_store import VERSION, Plan, fill_store
from ringfence.jobs.views.explain import explain
from ringfence.jobs.views.status import read_status
from ringfence.jobs.views.tables import TABLES, as_csv
from tests.dashboard.whole_view import whole_view
from tests.stores import open_at

HALF_LIFE = '{"drift_half_life_days":7.0}'
PLAN = Plan(runs=3, per_run=80)


@pytest.fixture
def opened(sql_url, tmp_path):
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
    }
    settings = load_values(values, tmp_path / "ringfence.toml", {})
    store = open_at(sql_url)
    yield store, settings
    store.close()


@pytest.fixture
def filled(opened):
    fill_store(*opened, PLAN)
    return opened


def test_rows_agree_with_counting_the_predictions_one_by_one(filled):
    store, settings = filled
    with store.reading() as connection:
        predictions = connection.execute(select(tables.prediction)).all()
    rows = count_coverage(store, settings)
    total = next(row for row in reversed(rows) if row.slice == "total")
    known = [one for one in predictions if one.label is not None]
    assert total.evaluated == len(predictions) == 240
    assert total.known == len(known)
    assert total.covered == sum(one.label in json.loads(one.classes) for one in known)
    assert total.singletons == sum(one.size == 1 for one in predictions)
    single = [one for one in known if one.size == 1]
    assert total.singleton_hits == sum(bool(one.covered) for one in single)
    assert total.empty == sum(one.size == 0 for one in predictions)
    assert total.full == sum(one.size == len(PLAN.classes) for one in predictions)
    assert total.mean_size == pytest.approx(sum(one.size for one in predictions) / 240)
    for slice_, many in (("run", 3), ("window", 2), ("total", 3), ("class", 4), ("group", 3)):
        assert sum(row.slice == slice_ for row in rows) == many
    for slice_ in ("class", "group"):
        own = [row for row in rows if row.slice == slice_]
        assert sum(row.known for row in own) == len(known)
        assert not any(row.exact for row in own)


def test_an_audit_without_news_writes_no_row_and_no_chain_entry(filled):
    store, settings = filled
    queries = ProjectQueries(store, "p")
    length = queries.chain_length()
    held = acquire(store, "p", "again", 60)
    changed, gone = coverage.record_coverage(
        Writer(store, held, b"key"), count_coverage(store, settings)
    )
    release(store, held)
    assert (changed, gone) == ([], [])
    assert queries.chain_length() == length


def test_nodes_that_have_no_group_are_said_beside_the_groups(filled, capsys):
    store, settings = filled
    queries = ProjectQueries(store, "p")
    print_coverage(count_coverage(store, settings), "Coverage")
    assert "evaluated nodes have no" not in capsys.readouterr().out
    assert len(classes.build(whole_view(queries))["lead"]) == 1
    first = tables.grouping.c.node_key.like("s:account 1-%")  # as if groups had been named later
    with store.transaction() as connection:
        connection.execute(tables.grouping.delete().where(first))
    rows = count_coverage(store, settings)
    print_coverage(rows, "Coverage")
    assert "80 of 240 evaluated nodes have no region" in capsys.readouterr().out
    held = acquire(store, "p", "again", 60)
    coverage.record_coverage(Writer(store, held, chain_key(None, settings.engine.folder)), rows)
    release(store, held)
    assert (
        "80 of 240 evaluated nodes have no region" in classes.build(whole_view(queries))["lead"][1]
    )


def test_pages_show_the_newest_rows_and_files_have_all(filled):
    short = ProjectQueries(filled[0], "p", max_rows=2)
    assert [row["seq"] for row in TABLES["runs"].read(short).rows] == [3, 2]
    assert [row["seq"] for row in TABLES["runs"].read(short.unlimited()).rows] == [3, 2, 1]
    assert len(as_csv(TABLES["coverage-run"].read(short.unlimited())).splitlines()) == 1 + PLAN.runs


def test_views_and_tables_answer(filled):
    store, _ = filled
    queries = ProjectQueries(store, "p")
    for name, view in TABLES.items():
        table = view.read(queries)
        assert len(as_csv(table).splitlines()) == len(table.rows) + 1, name
    with store.reading() as connection:
        for view in ("ringfence_run", "ringfence_coverage", "ringfence_class", "ringfence_alarm"):
            connection.execute(text(f"SELECT * FROM {view}")).all()
        row = connection.execute(
            text("SELECT decided_at, promised FROM ringfence_coverage WHERE slice = 'run'")
        ).first()
    assert str(row.decided_at).startswith("20")
    assert row.promised == pytest.approx(0.9)


def test_nothing_on_a_page_scans_the_predictions(filled):
    store, settings = filled
    if store.engine.dialect.name != "sqlite":
        pytest.skip("plans are read from SQLite")
    asked = []
    from sqlalchemy import event

    event.listen(
        store.engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3]))
    )
    queries = ProjectQueries(store, "p")
    for page in (today, coverage_page, classes, thresholds, runs):
        page.build(whole_view(queries))
    drift.build(Dashboard(settings, store, guard_of(settings)), whole_view(queries))
    run_page.build(queries, 2)
    comparison_page.build(queries, 1, 2)
    exposition(queries)
    explain(queries, "account 1-1")
    plans = []
    with store.reading() as connection:
        for query, values in asked.copy():
            if query.lstrip().startswith("SELECT") and " prediction" in query.replace("\n", " "):
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values).all()
                plans += [row[3] for row in rows]
    assert plans
    assert [plan for plan in plans if plan.startswith("SCAN")] == []


BROKEN = replace(PLAN, covered=0.0, known_runs=3)


@pytest.mark.parametrize(
    ("alphas", "evaluated"),
    [
        ((0.1,), 240),  # control: the configuration stays
        ((0.1, 0.1, 0.1, 0.1001), 240),
        ((0.1, 0.1, 0.1, 0.1001, 0.1), 320),  # changed, and changed back
        ((0.1, 0.1001, 0.1, 0.1001, 0.2), 160),
    ],
)
def test_a_changed_alpha_neither_wipes_a_broken_verdict_nor_its_alarm(
    opened, alphas, evaluated, capsys
):
    store, settings = opened
    fill_store(store, settings, replace(BROKEN, runs=max(3, len(alphas)), alphas=alphas))
    queries = ProjectQueries(store, "p")
    total = queries.total()
    assert (total.verdict, total.coverage, total.evaluated) == ("broken", 0.0, evaluated)
    assert ("is about the runs at alpha" in total.words) == (alphas[-1] != total.alpha)
    coverage_alarm = {alarm.rule: alarm for alarm in queries.alarms()}["coverage"]
    assert (coverage_alarm.state, coverage_alarm.words) == ("firing", total.words)
    assert today.build(whole_view(queries))["lines"][0].word == "broken"
    rows = count_coverage(store, settings)
    assert AuditReport(0, 0, 0, tuple(rows), ()).total.words == total.words
    counted = [(row.alpha, row.evaluated, row.verdict) for row in queries.totals()]
    assert counted == [(row.alpha, row.evaluated, row.verdict) for row in last_totals(rows)]
    assert sum(row.evaluated for row in queries.totals()) == max(3, len(alphas)) * 80
    print_status(read_status(store, "p"))
    assert "Broken: 0.0 %" in capsys.readouterr().out


def test_the_newest_terms_speak_where_no_other_is_worse(opened):
    store, settings = opened
    kept = replace(PLAN, runs=4, known_runs=3, alphas=(0.1, 0.1, 0.1, 0.2))
    fill_store(store, settings, kept)
    first, last = ProjectQueries(store, "p").totals()
    assert (first.verdict, last.verdict) == ("kept", "not enough known yet")
    assert ProjectQueries(store, "p").total() == last
    alarms = {alarm.rule: alarm.state for alarm in ProjectQueries(store, "p").alarms()}
    assert alarms["coverage"] == "no data"


def test_a_run_with_weighted_calibration_nodes_does_not_widen_the_band_of_the_others(opened):
    store, settings = opened
    fill_store(store, settings, replace(BROKEN, runs=4))
    with store.transaction() as connection:  # as drift_half_life_days would leave run 4
        last = tables.run.c.seq == 4
        connection.execute(tables.run.update().where(last).values(effective_calibration=1.5))
    totals = last_totals(count_coverage(store, settings))
    assert [(row.verdict, row.evaluated) for row in totals] == [
        ("broken", 240),
        ("not enough known yet", 80),
    ]


@pytest.mark.parametrize("changed", [{"score": "TPS"}, {"options": HALF_LIFE}])
def test_runs_of_another_score_or_half_life_are_counted_apart_and_hide_no_verdict(opened, changed):
    """All runs are weighted: one with few effective nodes would widen the band of the others."""
    store, settings = opened
    fill_store(store, settings, replace(BROKEN, runs=4))
    with store.transaction() as connection:
        every = tables.run.update().values(effective_calibration=250.0)
        connection.execute(every)
        last = tables.run.update().where(tables.run.c.seq == 4)
        connection.execute(last.values(effective_calibration=1.5, **changed))
    totals = last_totals(count_coverage(store, settings))
    assert [(row.verdict, row.evaluated) for row in totals] == [
        ("broken", 240),
        ("not enough known yet", 80),
    ]
    held = acquire(store, "p", "host:7", 60)
    writer = Writer(store, held, chain_key(None, settings.engine.folder))
    coverage.record_coverage(writer, count_coverage(store, settings))
    raise_alarms(writer, settings)
    release(store, held)
    queries = ProjectQueries(store, "p")
    assert [row.verdict for row in queries.totals()] == ["broken", "not enough known yet"]
    assert queries.total().verdict == "broken"
    assert {alarm.rule: alarm.state for alarm in queries.alarms()}["coverage"] == "firing"


def test_unseen_classes_are_counted_over_all_terms(opened):
    store, settings = opened
    fill_store(store, settings, replace(PLAN, runs=2, alphas=(0.1, 0.2)))
    with store.transaction() as connection:
        one_class = tables.coverage.c.name == "mule"
        connection.execute(tables.coverage.update().where(one_class).values(unseen=2))
        assert coverage.unseen_classes(connection, "p", VERSION) == {"mule": 4}


def test_a_changed_configuration_is_an_entry_of_the_chain(opened):
    store, settings = opened
    fill_store(store, settings, replace(PLAN, runs=4, alphas=(0.1, 0.1, 0.1001, 0.1)))
    queries = ProjectQueries(store, "p")
    entries = [entry for entry in queries.whole_chain() if entry.kind == "configuration"]
    assert [describe_entry(entry) for entry in entries] == [
        "from run 3 on: alpha 0.1 to 0.1001",
        "from run 4 on: alpha 0.1001 to 0.1",
    ]
    first = json.loads(entries[0].body)
    assert first["owner"] == "sample"
    assert first["at_ns"] == queries.run(3).decided_ns
    decided = [entry.kind for entry in queries.whole_chain()].index("configuration")
    assert queries.whole_chain()[decided + 1].kind == "decided"
    with store.reading() as connection:
        key = chain_key(None, settings.engine.folder)
        assert first_broken(connection, "p", key) is None


def test_terms_that_a_run_has_no_column_for_are_compared_with_the_last_change(opened):
    store, settings = opened
    fill_store(store, settings, replace(PLAN, runs=1))
    before = ProjectQueries(store, "p").run(1)
    held = acquire(store, "p", "host:7", 60)
    writer = Writer(store, held, chain_key(None, settings.engine.folder))
    row = {"seq": 2, "decided_ns": 5, "alpha": 0.1, "rule": "NodeEx", "score": "APS"}
    with store.transaction() as connection:
        for config, groups in (("b", []), ("c", ["region"])):
            new = {**row, "config": config}
            record_change(connection, writer, before, new, {"groups": groups})
        record_change(connection, writer, before, {**row, "config": before.config}, {})
    release(store, held)
    entries = [e for e in ProjectQueries(store, "p").whole_chain() if e.kind == "configuration"]
    assert [describe_entry(entry) for entry in entries] == [
        "from run 2 on: settings that are not terms",  # groups were not on record before
        "from run 2 on: groups [] to ['region']",
    ]
