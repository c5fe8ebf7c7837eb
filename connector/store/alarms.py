"""Alarms in SQL: the rules' input, the state of each rule, and every change as an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from ringfence.connector.alarm_records import AlarmEvent, AlarmState
from ringfence.connector.records import Run, StoredCoverage
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.basis.alarm_states import (
    KINDS,
    require_alarm_states,
    require_newest_states,
)
from ringfence.connector.store.audit_chain.basis.coverage_rows import (
    AUDITED,
    require_coverage_rows,
)
from ringfence.connector.store.audit_chain.sealed_entries import require_sealed
from ringfence.connector.store.chain import next_number
from ringfence.connector.store.coverage import unseen_classes
from ringfence.connector.store.engine import Store
from ringfence.connector.store.labels import newest_noticed_ns
from ringfence.connector.store.queries.shown_sample import last_sample
from ringfence.connector.store.queries.totals import (
    last_named,
    last_totals,
    own_promises,
    worst_total,
)
from ringfence.connector.store.rows import alarm_event_from_row, alarm_from_row
from ringfence.connector.store.runs import newest_run
from ringfence.connector.store.tables import alarm, alarm_event
from ringfence.connector.store.worklist.list_counts import ListCount, early_runs, list_counts
from ringfence.connector.store.worklist.listed_nodes import ListedRun, listed_runs
from ringfence.connector.store.writer import Writer


@dataclass(frozen=True, slots=True)
class CoverageDecline:
    """Evidence that coverage fell below what is promised, over the settled runs of one terms.

    `capital` is that of the bet against the promise after the last of `runs` runs; `since_seq` the
    likeliest first bad run, with the known nodes from there on and how many of them are covered.
    """

    model: str
    alpha: float
    runs: int
    capital: float
    since_seq: int
    known: int
    covered: int


@dataclass(frozen=True, slots=True)
class ListedFacts:
    """Runs that decided lists, their listed nodes counted, and runs that no verdict may rest on."""

    runs: tuple[ListedRun, ...] = ()
    counts: tuple[ListCount, ...] = ()
    early: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class AlarmFacts:
    """What rules judge: the newest model's worst total, the last run, the newest class noticed.

    `totals` are the newest model's totals under each of its terms (rule, score, alpha, …);
    `unseen` counts nodes by classes that the model never saw; `now_ns` is the database's time;
    `own_promises` are the newest model's rows of classes and groups with a promise of their own,
    `named` the newest rows of all of them. `declines` are those that the audit found; `sample` is
    the row of the audit sample, `listed` are the runs that decided lists, with their nodes counted.
    """

    total: StoredCoverage | None
    totals: tuple[StoredCoverage, ...]
    last_run: Run | None
    newest_label_ns: int | None
    unseen: Mapping[str, int]
    now_ns: int
    own_promises: tuple[StoredCoverage, ...] = ()
    named: tuple[StoredCoverage, ...] = ()
    declines: tuple[CoverageDecline, ...] = ()
    sample: StoredCoverage | None = None
    listed: ListedFacts = ListedFacts()


@dataclass(frozen=True, slots=True)
class CheckedAlarm:
    """A rule's state after a check; `was` is the state before where the change is an event."""

    after: AlarmState
    was: str | None


Check = Callable[[AlarmFacts, Mapping[str, AlarmState]], Sequence[CheckedAlarm]]
"""From the facts and the rules' states before to the states after."""


def record_check(writer: Writer, check: Check) -> tuple[AlarmState, ...]:
    """Read facts, apply `check` to them, and write states and events, in one transaction.

    Return the state of every rule, also of those that this check left as they were. The states
    before and the coverage rows that rules judge are compared with their seals.
    """
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        sealed = require_sealed(connection, project, writer.key, (*KINDS, AUDITED))
        before = _states(connection, project)
        require_alarm_states(sealed, before)
        require_coverage_rows(connection, project, sealed)
        checked = check(_facts(connection, project, now), before)
        return _record(connection, writer, now, before, checked)


def record_states(
    writer: Writer, check: Callable[[int, Mapping[str, AlarmState]], Sequence[CheckedAlarm]]
) -> tuple[AlarmState, ...]:
    """Write the states that `check` returns for the time and the states before, without facts.

    It is for a rule about damaged rows, from which facts can't be read, and about a chain that may
    be broken: the states before are compared with the newest entry about them alone.
    """
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        before = _states(connection, project)
        require_newest_states(connection, project, writer.key, before)
        return _record(connection, writer, now, before, check(now, before))


def _record(
    connection: Connection,
    writer: Writer,
    now: int,
    before: Mapping[str, AlarmState],
    checked: Sequence[CheckedAlarm],
) -> tuple[AlarmState, ...]:
    project = writer.lease.project
    for alarm_ in checked:
        after, was = alarm_.after, alarm_.was
        if was is not None:
            _insert_event(connection, writer, after, was, now)
        _write_state(connection, project, after, now, exists=after.rule in before)
    states = dict(before) | {alarm_.after.rule: alarm_.after for alarm_ in checked}
    if states != before:
        facts = {"states": alarm_facts(states.values())}
        chain.append(connection, project, writer.key, "alarms", facts)
    return tuple(states.values())


def alarm_facts(states: Iterable[AlarmState]) -> dict[str, list[Any]]:
    """Return what the chain says of alarms: state, since when, and why, by rule."""
    return {alarm_.rule: [alarm_.state, alarm_.since_ns, alarm_.words] for alarm_ in states}


def newest_events(store: Store, project: str, limit: int) -> list[AlarmEvent]:
    """Return the last events, oldest first."""
    query = select(alarm_event).where(alarm_event.c.project == project)
    with store.reading() as connection:
        rows = connection.execute(query.order_by(alarm_event.c.n.desc()).limit(limit)).all()
    return [alarm_event_from_row(row) for row in reversed(rows)]


def mark_delivered(writer: Writer, event: AlarmEvent, channels: set[str]) -> None:
    """Record which channels have delivered an event."""
    with writer.store.transaction() as connection:
        writer.begin(connection)
        connection.execute(
            update(alarm_event)
            .where(alarm_event.c.project == writer.lease.project, alarm_event.c.n == event.n)
            .values(delivered=" ".join(sorted(channels)))
        )


def _facts(connection: Connection, project: str, now: int) -> AlarmFacts:
    totals = last_totals(connection, project)
    total = worst_total(totals)
    return AlarmFacts(
        total,
        tuple(row for row in totals if total and row.model == total.model),
        newest_run(connection, project),
        newest_noticed_ns(connection, project),
        unseen_classes(connection, project, total.model) if total else {},
        now,
        tuple(
            row for row in own_promises(connection, project) if total and row.model == total.model
        ),
        tuple(last_named(connection, project)),
        sample=last_sample(connection, project),
        listed=_listed(connection, project),
    )


def _listed(connection: Connection, project: str) -> ListedFacts:
    runs = listed_runs(connection, project)
    if not runs:
        return ListedFacts()
    counts = list_counts(connection, project, runs)
    return ListedFacts(tuple(runs), tuple(counts), early_runs(connection, project))


def _states(connection: Connection, project: str) -> dict[str, AlarmState]:
    rows = connection.execute(select(alarm).where(alarm.c.project == project))
    return {row.rule: alarm_from_row(row) for row in rows}


def _write_state(
    connection: Connection, project: str, state: AlarmState, now: int, *, exists: bool
) -> None:
    values = {
        "state": state.state,
        "since_ns": state.since_ns,
        "checked_ns": now,
        "words": state.words,
    }
    if exists:
        this = (alarm.c.project == project) & (alarm.c.rule == state.rule)
        connection.execute(update(alarm).where(this).values(**values))
    else:
        connection.execute(insert(alarm).values(project=project, rule=state.rule, **values))


def _insert_event(
    connection: Connection, writer: Writer, state: AlarmState, was: str, now: int
) -> None:
    """Add an event and its chain entry."""
    project = writer.lease.project
    number = next_number(connection, project, alarm_event, ("event",))
    facts = {"rule": state.rule, "was": was, "state": state.state, "words": state.words}
    connection.execute(
        insert(alarm_event).values(project=project, n=number, at_ns=now, delivered="", **facts)
    )
    sealed = facts | {"event": number, "event_ns": now}
    chain.append(connection, project, writer.key, "alarm", sealed)
