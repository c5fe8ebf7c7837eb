"""Numbers of marks, alarm events, comparisons and activations: from the chain, and sealed once."""

from dataclasses import replace

import pytest
from sqlalchemy import func, insert, select, text

from ringfence.connector.store import alarms, chain, tables
from ringfence.connector.store.alarms import CheckedAlarm
from ringfence.connector.store.lifecycle.activations import record_activation
from ringfence.connector.store.lifecycle.comparisons import record_comparison
from ringfence.connector.store.worklist.marks import record_mark
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.project.audit_store import key_source
from tests.jobs.integrity.sample_record import ENGINES, RETURNED, compared, project, writing
from tests.jobs.integrity.test_tampering import problems_of

KINDS = ("mark", "alarm_event", "comparison", "activation")


def add_row(kind, store, settings):
    """Write one more row as the product does."""
    if kind == "mark":
        record_mark(store, "p", key_source(settings), RETURNED, "anna", "note", "once more")
        return
    with writing(store, settings) as writer:
        if kind == "comparison":
            record_comparison(writer, "sample-2", "sample-1", compared("sample-2", "sample-1"))
        elif kind == "activation":
            record_activation(writer, "sample-2", "promoted", "once more")
        else:
            alarms.record_states(writer, lambda _, before: without_data(before.values()))
            raise_alarms(writer, settings)


def without_data(states):
    """The same rules without data, on record: each that has some is an event then."""
    return [CheckedAlarm(replace(state, state="no data", since_ns=1), None) for state in states]


def newest(store, kind):
    table = tables.metadata.tables[kind]
    with store.reading() as connection:
        return connection.execute(select(func.max(table.c.n))).scalar_one()


def delete_newest(store, kind):
    with store.transaction() as connection:
        connection.execute(text(f"DELETE FROM {kind} WHERE n = {newest(store, kind)}"))


def next_after_newest_row(connection, project_, table, field):
    """What versions before did: the number after the newest row that stands in SQL."""
    query = select(func.max(table.c.n)).where(table.c.project == project_)
    return int(connection.execute(query).scalar() or 0) + 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_a_deleted_row_is_not_given_again(request, tmp_path, engine, kind):
    with project(request, tmp_path, engine) as (store, settings):
        last = newest(store, kind)
        delete_newest(store, kind)
        add_row(kind, store, settings)
        assert newest(store, kind) > last
        named = [
            problem for problem in problems_of(store, settings) if f"{kind} {last}: " in problem
        ]
        assert any("the row is gone" in problem for problem in named)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_was_sealed_twice_is_named(request, tmp_path, monkeypatch, engine, kind):
    """The control: as before, the number is given again, and the row that stands fits its entry."""
    for module in ("worklist.marks", "alarms", "lifecycle.comparisons", "lifecycle.activations"):
        name = f"ringfence.connector.store.{module}.next_number"
        monkeypatch.setattr(name, next_after_newest_row)
    with project(request, tmp_path, engine) as (store, settings):
        last = newest(store, kind)
        delete_newest(store, kind)
        add_row(kind, store, settings)
        assert newest(store, kind) >= last
        problems = problems_of(store, settings)
        assert any(f"{kind} {last}: sealed 2 times" in problem for problem in problems), problems
        assert not any(f"{kind} {last}: the row is gone" in problem for problem in problems)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_nobody_sealed_takes_no_number_and_stops_none(request, tmp_path, engine):
    with project(request, tmp_path, engine) as (store, settings):
        last = newest(store, "mark")
        forged = {"project": "p", "node_key": RETURNED, "at_ns": 1, "who": "x", "action": "done"}
        with store.transaction() as connection:
            for n in (last + 1, 2**63 - 1):
                connection.execute(insert(tables.mark).values(n=n, note="", **forged))
        add_row("mark", store, settings)
        with store.reading() as connection:
            query = select(tables.mark.c.n).where(tables.mark.c.who == "anna")
            assert last + 2 in set(connection.execute(query).scalars())
        problems = problems_of(store, settings)
        assert any(f"mark {last + 1}: the row was never recorded" in p for p in problems)


def test_numbers_of_a_chain_without_any_follow_the_rows(request, tmp_path):
    with (
        project(request, tmp_path, "sqlite") as (store, _),
        store.reading() as connection,
    ):
        number = chain.next_number(connection, "p", tables.mark, ("no such field",))
    assert number == newest(store, "mark") + 1
