"""Tables of what goes on around the runs: quarantine, schedule, alarms, the audit chain."""

from __future__ import annotations

from dataclasses import asdict

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.connector.store.trail.summary import describe_entry
from ringfence.jobs.views.tables.model import Column, Rows, TableView


def _quarantine_rows(queries: ProjectQueries) -> Rows:
    odd = [{"reason": relationship, "nodes": None} for relationship in queries.odd_relationships()]
    return [as_row(reason) for reason in queries.quarantine()] + odd


def _correction_rows(queries: ProjectQueries) -> Rows:
    return [asdict(correction) for correction in queries.corrections()]


def _schedule_rows(queries: ProjectQueries) -> Rows:
    return [as_row(job) for job in queries.schedule()]


def _alarm_rows(queries: ProjectQueries) -> Rows:
    return [as_row(alarm) for alarm in queries.alarms()]


def _event_rows(queries: ProjectQueries) -> Rows:
    return [
        as_row(event) | {"delivered": " ".join(event.delivered)} for event in queries.alarm_events()
    ]


def _chain_rows(queries: ProjectQueries) -> Rows:
    return [
        as_row(entry)
        | {
            "kind": entry.kind,
            "what": describe_entry(entry),
            "at_ns": entry.at_ns,
            "actor": entry.actor,
        }
        for entry in queries.chain()
    ]


QUARANTINE = TableView(
    "quarantine",
    "Quarantine",
    (Column("reason", "reason"), Column("nodes", "nodes", "int")),
    _quarantine_rows,
    "No node is unusable.",
)
CORRECTIONS = TableView(
    "corrections",
    "Corrected calibration nodes",
    (
        Column("noticed", "noticed_ns", "time"),
        Column("node", "node_key"),
        Column("was", "was"),
        Column("is", "label"),
        Column("why", "reason"),
        Column("model", "version"),
    ),
    _correction_rows,
    "No class of a calibration node was corrected or withdrawn.",
)
SCHEDULE = TableView(
    "schedule",
    "Schedule",
    (
        Column("job", "job"),
        Column("when", "trigger"),
        Column("due", "due_ns", "time"),
        Column("ended", "ended_ns", "time"),
        Column("outcome", "outcome"),
        Column("words", "words"),
    ),
    _schedule_rows,
    "No schedule has run: ringfence schedule",
)
ALARMS = TableView(
    "alarms",
    "Alarms",
    (
        Column("rule", "rule"),
        Column("state", "state", "state"),
        Column("since", "since_ns", "time"),
        Column("why", "words"),
    ),
    _alarm_rows,
    "No audit yet: ringfence audit",
)
ALARM_EVENTS = TableView(
    "alarm-events",
    "Changes of alarms",
    (
        Column("at", "at_ns", "time"),
        Column("rule", "rule"),
        Column("was", "was"),
        Column("is", "state", "state"),
        Column("why", "words"),
        Column("told by", "delivered"),
    ),
    _event_rows,
    "No alarm so far.",
)
CHAIN = TableView(
    "chain",
    "Audit chain",
    (
        Column("entry", "n", "int"),
        Column("kind", "kind"),
        Column("what", "what"),
        Column("hash", "hash", "hash"),
        Column("entry before", "prev", "hash"),
        Column("at", "at_ns", "time"),
        Column("by", "actor"),
    ),
    _chain_rows,
    "The chain is empty.",
)
