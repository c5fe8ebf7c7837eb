"""Tables of what goes on around the runs: quarantine, schedule, alarms, the audit chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ringfence.connector.records import ChainEntry
from ringfence.connector.store.audit_chain.summary import describe_entry
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import as_row
from ringfence.jobs.views.tables.model import Cells, Column, Rows, TableView


def _quarantine_rows(queries: ProjectQueries) -> Rows:
    odd = [{"reason": relationship, "nodes": None} for relationship in queries.odd_relationships()]
    return [as_row(reason) for reason in queries.quarantine()] + odd


def _correction_rows(queries: ProjectQueries) -> Rows:
    return [asdict(correction) for correction in queries.corrections()]


def _removal_rows(queries: ProjectQueries) -> Rows:
    return [asdict(removal) for removal in queries.removals()]


def _schedule_rows(queries: ProjectQueries) -> Rows:
    return [as_row(job) for job in queries.schedule()]


def _alarm_rows(queries: ProjectQueries) -> Rows:
    return [as_row(alarm) for alarm in queries.alarms()]


def _event_rows(queries: ProjectQueries) -> Rows:
    return [
        as_row(event) | {"delivered": " ".join(event.delivered)} for event in queries.alarm_events()
    ]


def _chain_rows(queries: ProjectQueries) -> Rows:
    return [_entry_row(entry) for entry in queries.chain()]


def _chain_blocks(queries: ProjectQueries) -> Iterator[Rows]:
    return ([_entry_row(entry) for entry in block] for block in queries.chain_blocks())


def _entry_row(entry: ChainEntry) -> Cells:
    return as_row(entry) | {
        "kind": entry.kind,
        "what": describe_entry(entry),
        "at_ns": entry.at_ns,
        "actor": entry.actor,
    }


QUARANTINE = TableView(
    "quarantine",
    "Quarantine",
    (
        Column("reason", "reason", "text", "Why the nodes can't be used."),
        Column("nodes", "nodes", "int", "How many nodes; none for a relationship without a time."),
    ),
    _quarantine_rows,
    "No node is unusable.",
)
CORRECTIONS = TableView(
    "corrections",
    "Corrected calibration nodes",
    (
        Column("noticed", "noticed_ns", "time", "When a run or an audit noticed it, in UTC."),
        Column("node", "node_key", "text", "Typed key of the calibration node."),
        Column("was", "was", "text", "The class that counted before."),
        Column("is", "label", "text", "The class that counts now; none: the node is out."),
        Column("why", "reason", "text", "Corrected, withdrawn, or another node with its key."),
        Column("model", "version", "text", "The model version that it calibrates.", extra=True),
    ),
    _correction_rows,
    "No class of a calibration node was corrected or withdrawn.",
)
REMOVALS = TableView(
    "removals",
    "Details removed by retention",
    (
        Column("run", "seq", "int", "The run whose details were removed."),
        Column("removed", "at_ns", "time", "When that was, in UTC."),
        Column("kept for", "keep_days", "num", "The period in force then, in days."),
        Column("nodes", "nodes", "int", "Nodes that lost scores and p-values of excluded classes."),
        Column("worklist rows", "entries", "int", "Rows of the worklist that went."),
        Column("shadow sets", "shadow_sets", "int", "Shadow sets that lost their p-values."),
        Column("characters", "freed", "int", "Characters of text that this saved.", extra=True),
    ),
    _removal_rows,
    "Nothing was removed.",
)
SCHEDULE = TableView(
    "schedule",
    "Schedule",
    (
        Column("job", "job", "text", "What is done."),
        Column("when", "trigger", "text", "How often, as configured."),
        Column("due", "due_ns", "time", "When it is due next, in UTC."),
        Column("ended", "ended_ns", "time", "When it ended last, in UTC."),
        Column("outcome", "outcome", "text", "How it ended last."),
        Column("words", "words", "text", "What its last run said.", extra=True),
    ),
    _schedule_rows,
    "No schedule has run: ringfence schedule",
)
ALARMS = TableView(
    "alarms",
    "Alarms",
    (
        Column("rule", "rule", "text", "Name of the rule, as in [alarms] rules."),
        Column("state", "state", "state", "Firing, ok, or no data to tell."),
        Column("since", "since_ns", "time", "Since when the rule says so, in UTC."),
        Column("why", "words", "text", "What the rule found."),
    ),
    _alarm_rows,
    "No audit yet: ringfence audit",
)
ALARM_EVENTS = TableView(
    "alarm-events",
    "Changes of alarms",
    (
        Column("at", "at_ns", "time", "When the state changed, in UTC."),
        Column("rule", "rule", "text", "Name of the rule, as in [alarms] rules."),
        Column("was", "was", "text", "The state before."),
        Column("is", "state", "state", "The state since."),
        Column("why", "words", "text", "What the rule found."),
        Column("told by", "delivered", "text", "Channels that have taken it.", extra=True),
    ),
    _event_rows,
    "No alarm so far.",
)
CHAIN = TableView(
    "chain",
    "Audit chain",
    (
        Column("entry", "n", "int", "Number of the entry, without gaps."),
        Column("kind", "kind", "text", "Kind of the entry.", extra=True),
        Column("what", "what", "text", "What was written down."),
        Column("hash", "hash", "hash", "Seal over this entry and all before it.", extra=True),
        Column("entry before", "prev", "hash", "Seal of the entry before.", extra=True),
        Column("at", "at_ns", "time", "When it was written, in UTC; the first version noted none."),
        Column("by", "actor", "text", "Command, user, host and process that wrote it."),
    ),
    _chain_rows,
    "No entry in this time.",
    lead=("at_ns", "actor", "what"),
    read_blocks=_chain_blocks,
)
