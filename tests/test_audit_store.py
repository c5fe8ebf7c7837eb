"""What an audit writes and pages read, on SQLite and PostgreSQL alike, without a graph."""

import json
from pathlib import Path

import pytest
from sqlalchemy import make_url, select, text

from ringfence.connector import coverage, tables
from ringfence.connector.chain import chain_key
from ringfence.connector.lease import acquire, release
from ringfence.connector.runs import Writer
from ringfence.connector.store import open_store
from ringfence.jobs import printing_coverage
from ringfence.jobs.auditing import count_coverage
from ringfence.jobs.config import load_values
from ringfence.jobs.explain import explain
from ringfence.jobs.looking import Look
from ringfence.jobs.sample_store import Plan, fill_store
from ringfence.jobs.shown import TABLES, as_csv
from ringfence.jobs.web import pages
from ringfence.jobs.web.metrics import exposition

PLAN = Plan(runs=3, per_run=80)


@pytest.fixture
def filled(sql_url, tmp_path):
    address = make_url(sql_url)
    values = {
        "project": "p",
        "graph": {"label": "A", "key": "id", "features": "f", "class_property": "kind"},
        "audit": {"groups": ["region"]},
    }
    settings = load_values(values, tmp_path / "ringfence.toml", {})
    bare = address._replace(password=None).render_as_string()
    store = open_store(bare, None if address.password is None else str(address.password))
    fill_store(store, settings, PLAN)
    yield store, settings
    store.close()


def test_rows_agree_with_counting_the_predictions_one_by_one(filled):
    store, settings = filled
    with store.reading() as connection:
        predictions = connection.execute(select(tables.prediction)).all()
    rows = count_coverage(store, settings)
    total = next(row for row in reversed(rows) if row["slice"] == "total")
    known = [one for one in predictions if one.label is not None]
    assert total["evaluated"] == len(predictions) == 240
    assert total["known"] == len(known)
    assert total["covered"] == sum(one.label in json.loads(one.classes) for one in known)
    assert total["singletons"] == sum(one.size == 1 for one in predictions)
    single = [one for one in known if one.size == 1]
    assert total["singleton_hits"] == sum(bool(one.covered) for one in single)
    assert total["empty"] == sum(one.size == 0 for one in predictions)
    assert total["full"] == sum(one.size == len(PLAN.classes) for one in predictions)
    assert total["mean_size"] == pytest.approx(sum(one.size for one in predictions) / 240)
    for slice_, many in (("run", 3), ("window", 2), ("total", 3), ("class", 4), ("group", 3)):
        assert sum(row["slice"] == slice_ for row in rows) == many
    for slice_ in ("class", "group"):
        own = [row for row in rows if row["slice"] == slice_]
        assert sum(row["known"] for row in own) == len(known)
        assert not any(row["exact"] for row in own)


def test_an_audit_without_news_writes_no_row_and_no_chain_entry(filled):
    store, settings = filled
    look = Look(store, "p")
    length = look.chain_length()
    held = acquire(store, "p", "again", 60)
    changed, gone = coverage.record_coverage(
        Writer(store, held, b"key"), count_coverage(store, settings)
    )
    release(store, held)
    assert (changed, gone) == ([], [])
    assert look.chain_length() == length


def test_nodes_that_have_no_group_are_said_beside_the_groups(filled, capsys):
    store, settings = filled
    look = Look(store, "p")
    printing_coverage.coverage(count_coverage(store, settings), "Coverage")
    assert "evaluated nodes have no" not in capsys.readouterr().out
    assert len(pages.classes(look)["lead"]) == 1
    first = tables.grouping.c.node_key.like("s:account 1-%")  # as if groups had been named later
    with store.transaction() as connection:
        connection.execute(tables.grouping.delete().where(first))
    rows = count_coverage(store, settings)
    printing_coverage.coverage(rows, "Coverage")
    assert "80 of 240 evaluated nodes have no region" in capsys.readouterr().out
    held = acquire(store, "p", "again", 60)
    coverage.record_coverage(Writer(store, held, chain_key(None, settings.engine.folder)), rows)
    release(store, held)
    assert "80 of 240 evaluated nodes have no region" in pages.classes(look)["lead"][1]


def test_pages_show_the_newest_rows_and_files_have_all(filled):
    short = Look(filled[0], "p", most=2)
    assert [row["seq"] for row in TABLES["runs"](short).rows] == [3, 2]
    assert [row["seq"] for row in TABLES["runs"](short.whole()).rows] == [3, 2, 1]
    assert len(as_csv(TABLES["coverage-run"](short.whole())).splitlines()) == 1 + PLAN.runs


def test_views_and_tables_answer(filled):
    store, _ = filled
    look = Look(store, "p")
    for name, make in TABLES.items():
        shown = make(look)
        assert len(as_csv(shown).splitlines()) == len(shown.rows) + 1, name
    with store.reading() as connection:
        for view in ("ringfence_run", "ringfence_coverage", "ringfence_class", "ringfence_alarm"):
            connection.execute(text(f"SELECT * FROM {view}")).all()
        row = connection.execute(
            text("SELECT decided_at, promised FROM ringfence_coverage WHERE slice = 'run'")
        ).first()
    assert str(row.decided_at).startswith("20")
    assert row.promised == pytest.approx(0.9)


def test_the_grafana_example_asks_for_columns_that_exist(filled):
    store, _ = filled
    page = json.loads(
        (Path(__file__).parent.parent / "examples/grafana-dashboard.json").read_text()
    )
    for panel in page["panels"]:
        query = panel["targets"][0]["rawSql"].replace("$project", "p")
        with store.reading() as connection:
            connection.execute(text(query.replace("$__timeFilter(decided_at)", "1 = 1"))).all()


def test_nothing_on_a_page_scans_the_predictions(filled):
    store, _ = filled
    if store.engine.dialect.name != "sqlite":
        pytest.skip("plans are read from SQLite")
    asked = []
    from sqlalchemy import event

    event.listen(
        store.engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3]))
    )
    look = Look(store, "p")
    for page in (pages.today, pages.coverage, pages.classes, pages.thresholds, pages.runs):
        page(look)
    pages.drift(look, "NodeEx")
    exposition(look)
    explain(look, "account 1-1")
    plans = []
    with store.reading() as connection:
        for query, values in asked.copy():
            if query.lstrip().startswith("SELECT") and " prediction" in query.replace("\n", " "):
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values).all()
                plans += [row[3] for row in rows]
    assert plans
    assert [plan for plan in plans if plan.startswith("SCAN")] == []
