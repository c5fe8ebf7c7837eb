"""Alarms: rules over what stands in the audit store, with a pending period and a no-data state.

A rule finds its condition true, false, or without data. True for `pending_minutes` on end it fires.
Every change of state is an event in SQL first, and told to webhook and mail afterwards; what could
not be delivered is tried again at the next audit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from ringfence.connector import chain
from ringfence.connector.runs import Writer
from ringfence.connector.tables import alarm, alarm_event, coverage, label, run
from ringfence.connector.times import NANOSECONDS, words
from ringfence.jobs.alarm_channels import deliver
from ringfence.jobs.settings import Settings
from ringfence.models.selection import LARGE
from ringfence.models.watch import Watch

OK, PENDING, FIRING, NO_DATA = "ok", "pending", "firing", "no data"
MINUTE_NS, HOUR_NS = 60 * NANOSECONDS, 3600 * NANOSECONDS
WATCH_DELTA = 0.01


@dataclass(frozen=True, slots=True)
class AlarmState:
    """What one rule says now."""

    rule: str
    state: str
    words: str
    since_ns: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules look at: the newest model's total row, its last run, the newest class noticed."""

    total: Any
    last_run: Any
    newest_label_ns: int | None
    unseen: dict[str, int]
    now_ns: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a rule's condition holds (None: no data to tell), and why."""

    holds: bool | None
    words: str


def raise_alarms(writer: Writer, settings: Settings) -> tuple[AlarmState, ...]:
    """Check every configured rule, record changes, tell whoever is to be told."""
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        facts = read_facts(connection, writer.lease.project, now)
        states = [
            _advance(connection, writer, rule, RULES[rule](facts, settings), settings, now)
            for rule in dict.fromkeys(settings.alarms.rules)
        ]
    deliver(writer, settings)
    return tuple(states)


def read_facts(connection: Connection, project: str, now: int) -> Facts:
    """Return what the rules look at."""
    total = connection.execute(
        select(coverage)
        .where(coverage.c.project == project, coverage.c.slice == "total")
        .order_by(coverage.c.seq.desc())
        .limit(1)
    ).first()
    last = connection.execute(
        select(run.c.seq, run.c.decided_ns, run.c.watch)
        .where(run.c.project == project)
        .order_by(run.c.seq.desc())
        .limit(1)
    ).first()
    newest = connection.execute(
        select(func.max(label.c.noticed_ns)).where(label.c.project == project)
    ).scalar()
    unseen = connection.execute(
        select(coverage.c.name, coverage.c.unseen).where(
            coverage.c.project == project,
            coverage.c.slice == "class",
            coverage.c.unseen > 0,
            coverage.c.model == (total.model if total else ""),
        )
    )
    return Facts(total, last, newest, {row.name: row.unseen for row in unseen}, now)


def _coverage(facts: Facts, settings: Settings) -> Finding:
    if facts.total is None or facts.total.known == 0:
        return Finding(None, "no class is known yet")
    hours = settings.alarms.no_data_hours
    if facts.total.verdict == "broken":
        return Finding(True, facts.total.words)
    if facts.newest_label_ns is None or facts.now_ns - facts.newest_label_ns > hours * HOUR_NS:
        return Finding(None, f"no class became known since {words(facts.newest_label_ns)}")
    return Finding(False, facts.total.words)


def _unseen(facts: Facts, _settings: Settings) -> Finding:
    if not facts.unseen:
        return Finding(False, "every class that became known was in the training")
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(facts.unseen.items()))
    count = sum(facts.unseen.values())
    return Finding(True, f"{count} nodes have a class that the model never saw: {listed[:300]}")


def _drift(facts: Facts, _settings: Settings) -> Finding:
    if facts.last_run is None or not facts.last_run.watch:
        return Finding(None, "the watch has seen no class yet")
    state = Watch.from_dict(json.loads(facts.last_run.watch)["state"])
    return Finding(state.alarm(WATCH_DELTA) if state.labels else None, state.words(WATCH_DELTA))


def _bias(facts: Facts, _settings: Settings) -> Finding:
    if facts.total is None or facts.total.bias is None:
        return Finding(None, "too few nodes of known or unknown class to compare")
    return Finding(facts.total.bias > LARGE, facts.total.bias_words)


def _labels(facts: Facts, settings: Settings) -> Finding:
    hours = settings.alarms.no_data_hours
    if facts.newest_label_ns is None:
        return Finding(None, "no class is known yet")
    late = facts.now_ns - facts.newest_label_ns > hours * HOUR_NS
    return Finding(late, f"a class became known last at {words(facts.newest_label_ns)}")


def _runs(facts: Facts, settings: Settings) -> Finding:
    if facts.last_run is None:
        return Finding(None, "there is no run yet")
    late = facts.now_ns - facts.last_run.decided_ns > settings.alarms.no_run_hours * HOUR_NS
    return Finding(late, f"the last run was at {words(facts.last_run.decided_ns)}")


RULES: dict[str, Callable[[Facts, Settings], Finding]] = {
    "coverage": _coverage,
    "unseen": _unseen,
    "drift": _drift,
    "bias": _bias,
    "labels": _labels,
    "runs": _runs,
}


def next_state(before: str, since_ns: int, holds: bool | None, now_ns: int, pending_ns: int) -> str:
    """Return the state after a look.

    >>> next_state("ok", 0, True, now_ns=5, pending_ns=10)
    'pending'
    >>> next_state("pending", 0, True, now_ns=10, pending_ns=10)
    'firing'
    >>> next_state("firing", 0, None, now_ns=11, pending_ns=10)
    'no data'
    """
    if holds is None:
        return NO_DATA
    if not holds:
        return OK
    if before == FIRING or pending_ns == 0:
        return FIRING
    return FIRING if before == PENDING and now_ns - since_ns >= pending_ns else PENDING


def _advance(
    connection: Connection, writer: Writer, rule: str, found: Finding, settings: Settings, now: int
) -> AlarmState:
    project = writer.lease.project
    this = (alarm.c.project == project) & (alarm.c.rule == rule)
    before = connection.execute(select(alarm).where(this)).first()
    was, since = (before.state, before.since_ns) if before else (OK, now)
    pending_ns = int(settings.alarms.pending_minutes * MINUTE_NS)
    state = next_state(was, since, found.holds, now, pending_ns)
    if state != was:
        since = now
    if state != was and (before or state not in {OK, NO_DATA}):  # a first look is no news
        _event(connection, writer, AlarmState(rule, state, found.words, now), was)
    values = {"state": state, "since_ns": since, "checked_ns": now, "words": found.words}
    if before:
        connection.execute(update(alarm).where(this).values(**values))
    else:
        connection.execute(insert(alarm).values(project=project, rule=rule, **values))
    return AlarmState(rule, state, found.words, since)


def _event(connection: Connection, writer: Writer, state: AlarmState, was: str) -> None:
    project = writer.lease.project
    last = connection.execute(
        select(func.max(alarm_event.c.n)).where(alarm_event.c.project == project)
    ).scalar()
    facts = {"rule": state.rule, "was": was, "state": state.state, "words": state.words}
    connection.execute(
        insert(alarm_event).values(
            project=project, n=(last or 0) + 1, at_ns=state.since_ns, delivered="", **facts
        )
    )
    if FIRING in (state.state, was):
        chain.append(connection, project, writer.key, "alarm", facts)
