"""Records that are only read: what pages, reports, metrics and `status` show of a project.

The records that scoring and auditing write are in `connector.records`. `as_row` turns any of them
into the columns of its SQL table, in the table's order: the keys of the JSON API, of the report and
of `--json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Table

from ringfence.connector.alarm_records import AlarmEvent, AlarmState
from ringfence.connector.records import ChainEntry, NoticedLabel, Run, StoredCoverage
from ringfence.connector.store import tables
from ringfence.connector.store.rows import ColumnValues


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCoverage(StoredCoverage):
    """A coverage row with what its run decided by."""

    decided_ns: int
    threshold: float | None
    n_calibration: int


@dataclass(frozen=True, slots=True)
class MonitorState:
    """The exchangeability monitor and the calibration scores' quantiles after one run.

    `watch` holds the monitor's `state`, the number of `new` classes and their mean p-value
    `mean_p`, as JSON values; None where the run saw no newly known class.
    """

    seq: int
    decided_ns: int
    model: str
    calibration_scores: tuple[float, ...] | None
    watch: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ProjectCounts:
    """How many nodes were evaluated, and how many of their classes are known."""

    evaluated: int
    known: int

    @property
    def unknown(self) -> int:
        """Evaluated nodes whose class is not known yet."""
        return self.evaluated - self.known

    def as_dict(self) -> dict[str, int]:
        """Return the three counts by name."""
        return {"evaluated": self.evaluated, "known": self.known, "unknown": self.unknown}


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model version with its manifest, as JSON values; `state` says whether it is in use."""

    project: str
    version: str
    trained_ns: int
    manifest: Mapping[str, Any]
    state: str

    @property
    def network(self) -> str:
        """Name of the network."""
        return str(self.manifest["network"])

    @property
    def classes(self) -> list[str]:
        """The classes, in the order of the p-values."""
        return list(self.manifest["classes"])

    @property
    def counts(self) -> dict[str, int]:
        """Number of labelled nodes by role."""
        return dict(self.manifest["counts"])

    @property
    def weights_sha256(self) -> str | None:
        """Hash of the weights' file, where the manifest has it."""
        return self.manifest.get("weights_sha256")


@dataclass(frozen=True, slots=True)
class QuarantineReason:
    """Why nodes can't be used, and how many."""

    reason: str
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlarm(AlarmState):
    """An alarm's state as SQL holds it."""

    project: str
    checked_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlarmEvent(AlarmEvent):
    """A change of an alarm's state as SQL holds it."""

    project: str


@dataclass(frozen=True, slots=True)
class LeaseState:
    """Up to where the graph was read, and which process is at work now, if any."""

    watermark_ns: int | None
    working: str | None


@dataclass(frozen=True, slots=True)
class ChainSeal:
    """Number and hash of a chain entry."""

    n: int
    hash: str


def column_names(table: Table) -> tuple[str, ...]:
    """Return the names of a table's columns, in its order."""
    return tuple(column.name for column in table.columns)


COLUMNS: dict[type, tuple[str, ...]] = {
    Run: column_names(tables.run),
    StoredCoverage: column_names(tables.coverage),
    RunCoverage: (*column_names(tables.coverage), "decided_ns", "threshold", "n_calibration"),
    ChainEntry: column_names(tables.audit),
    NoticedLabel: column_names(tables.label),
    StoredAlarm: column_names(tables.alarm),
    StoredAlarmEvent: column_names(tables.alarm_event),
}
"""The order in which a record's fields are shown, where it is not the record's own."""


def columns_of(record: type) -> tuple[str, ...]:
    """Return the names under which a record's values are shown.

    >>> columns_of(ChainSeal), columns_of(StoredAlarm)[:2]
    (('n', 'hash'), ('project', 'rule'))
    """
    return COLUMNS.get(record) or tuple(field.name for field in fields(record))


def as_row(record: Any) -> dict[str, Any]:
    """Return a record's values by column.

    >>> as_row(QuarantineReason("no features", 3))
    {'reason': 'no features', 'nodes': 3}
    """
    return {name: getattr(record, name) for name in columns_of(type(record))}


def monitor_state_from_row(row: ColumnValues) -> MonitorState:
    """Return the state of the monitor after a run."""
    scores, watch = row["calibration_scores"], row["watch"]
    return MonitorState(
        row["seq"],
        row["decided_ns"],
        row["model"],
        tuple(json.loads(scores)) if scores else None,
        json.loads(watch) if watch else None,
    )


def model_from_row(row: ColumnValues, state: str) -> ModelRecord:
    """Return a version with its manifest and state."""
    return ModelRecord(**row | {"manifest": json.loads(row["manifest"]), "state": state})


def alarm_event_from_row(row: ColumnValues) -> StoredAlarmEvent:
    """Return an event of an alarm with the channels that took it."""
    return StoredAlarmEvent(**row | {"delivered": tuple(row["delivered"].split())})
