"""What `ringfence verify` reads of the audit store: the chain, and the rows that it seals.

Everything is read in one snapshot, so that a run that is decided meanwhile is in all of it or in
none of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, func, select

from ringfence.connector.records import (
    ChainEntry,
    Member,
    NoticedLabel,
)
from ringfence.connector.store.audit_chain.keys import KeySource, current_key
from ringfence.connector.store.chain import (
    broken_entry,
    describe_rotation,
    fits,
    newest_entry,
    read_entries,
)
from ringfence.connector.store.coverage import mark_facts
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.activations import Activation, read_activations
from ringfence.connector.store.lifecycle.comparisons import StoredComparison, read_comparisons
from ringfence.connector.store.models import MEMBER
from ringfence.connector.store.tables import (
    alarm,
    alarm_event,
    audit_mark,
    consulted,
    coverage,
    further_set,
    joined,
    label,
    lease,
    member,
    model,
    prediction,
    rescore,
    run,
    shadow_coverage,
    shadow_run,
    shadow_set,
    threshold,
    worklist_entry,
)

RETRIES, RETRY_SECONDS = 2, 0.3

Row = Mapping[str, Any]
"""A row as SQL has it, by column; JSON columns stay text."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """The chain and the rows of the tables that are small enough to be held at once.

    `first_broken` is the number of the first entry that doesn't fit the chain, or None; `rotation`
    says in words where the key was rotated last, empty where it never was.
    `run_columns` holds the rows of the table `run` by number, `models` those of `model` by version;
    `lease` is the project's row, None before the first lease; `mark` what the chain would say of
    the row of `audit_mark`, None before the first audit; `activations` every change of the model
    version in use and `comparisons` every comparison of versions, oldest first.
    """

    entries: tuple[ChainEntry, ...]
    rotation: str
    first_broken: int | None
    run_columns: Mapping[int, Row]
    models: Mapping[str, Row]
    coverage: tuple[Row, ...]
    alarms: Mapping[str, Row]
    alarm_events: Mapping[int, Row]
    lease: Row | None
    mark: Mapping[str, Any] | None
    activations: tuple[Activation, ...]
    comparisons: tuple[StoredComparison, ...] = ()

    def bodies(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """Yield the bodies of the entries of one kind, oldest first."""
        return (entry.facts for entry in self.entries if entry.kind == kind)

    def hash_of(self, n: int) -> str | None:
        """Return the hash of entry `n`; None where there is no such entry."""
        return next((entry.hash for entry in self.entries if entry.n == n), None)


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Reads a project inside one snapshot of the store; `key` is the chain's."""

    connection: Connection
    project: str
    key: bytes

    def record(self) -> AuditRecord:
        """Return chain and small tables."""
        leases = self._rows(lease)
        entries = read_entries(self.connection, self.project)
        marks = select(audit_mark).where(audit_mark.c.project == self.project)
        mark = self.connection.execute(marks).first()
        return AuditRecord(
            entries=entries,
            rotation=describe_rotation(self.connection, self.project),
            first_broken=broken_entry(entries, self.project, self.key),
            run_columns={row["seq"]: row for row in self._rows(run)},
            models={row["version"]: row for row in self._rows(model)},
            coverage=tuple(self._rows(coverage)),
            alarms={row["rule"]: row for row in self._rows(alarm)},
            alarm_events={row["n"]: row for row in self._rows(alarm_event)},
            lease=leases[0] if leases else None,
            mark=None if mark is None else mark_facts(mark),
            activations=tuple(read_activations(self.connection, self.project)),
            comparisons=tuple(read_comparisons(self.connection, self.project)),
        )

    def predictions(self, seq: int) -> list[Row]:
        """Return the rows of a run's predictions."""
        query = select(prediction).where(
            prediction.c.project == self.project, prediction.c.seq == seq
        )
        return [row._asdict() for row in self.connection.execute(query)]

    def keys_of_run(self, seq: int) -> list[str]:
        """Return the keys of a run's nodes."""
        query = select(prediction.c.node_key).where(
            prediction.c.project == self.project, prediction.c.seq == seq
        )
        return list(self.connection.execute(query).scalars())

    def further_sets(self, seq: int) -> list[Row]:
        """Return the rows of a run's sets at the alphas after the first."""
        query = select(further_set).where(
            further_set.c.project == self.project, further_set.c.seq == seq
        )
        return [row._asdict() for row in self.connection.execute(query)]

    def entries(self, seq: int) -> list[Row]:
        """Return the worklist's rows of a run's nodes."""
        query = (
            select(worklist_entry)
            .join(prediction, _of_entry())
            .where(prediction.c.project == self.project, prediction.c.seq == seq)
        )
        return [row._asdict() for row in self.connection.execute(query)]

    def count_orphaned_entries(self) -> int:
        """Return how many rows the worklist has of nodes that were never evaluated."""
        query = (
            select(func.count())
            .select_from(worklist_entry.outerjoin(prediction, _of_entry()))
            .where(worklist_entry.c.project == self.project, prediction.c.node_key.is_(None))
        )
        return int(self.connection.execute(query).scalar_one())

    def count_predictions(self) -> dict[int, int]:
        """Return how many predictions stand under each run's number."""
        query = select(prediction.c.seq, func.count()).where(prediction.c.project == self.project)
        rows = self.connection.execute(query.group_by(prediction.c.seq))
        return {int(seq): int(count) for seq, count in rows}

    def labels_of_run(self, seq: int) -> dict[str, list[NoticedLabel]]:
        """Return the label rows of a run's nodes by key, oldest first."""
        same = (label.c.project == prediction.c.project) & (
            label.c.node_key == prediction.c.node_key
        )
        query = (
            select(label)
            .join(prediction, same)
            .where(prediction.c.project == self.project, prediction.c.seq == seq)
            .order_by(label.c.noticed_ns)
        )
        by_key: dict[str, list[NoticedLabel]] = {}
        for row in self.connection.execute(query):
            by_key.setdefault(row.node_key, []).append(NoticedLabel(**row._asdict()))
        return by_key

    def label_blocks(self) -> Iterator[tuple[int, list[NoticedLabel]]]:
        """Yield the label rows by the time at which they were noticed: a chain entry has one."""
        query = select(label).where(label.c.project == self.project).order_by(label.c.noticed_ns)
        rows = self.connection.execute(query)
        for noticed_ns, block in groupby(rows, key=lambda row: row.noticed_ns):
            yield noticed_ns, [NoticedLabel(**row._asdict()) for row in block]

    def members(self, version: str) -> list[Member]:
        """Return the labelled nodes of a model version."""
        query = select(*MEMBER).where(member.c.project == self.project, member.c.version == version)
        return [Member(*row) for row in self.connection.execute(query)]

    def joining_runs(self) -> set[int]:
        """Return the runs by which nodes joined the calibration."""
        return self.runs_named_by(joined)

    def runs_with_thresholds(self) -> set[int]:
        """Return the runs that rows of `threshold` or `further_set` name."""
        return self.runs_named_by(threshold) | self.runs_named_by(further_set)

    def joined_versions(self, seq: int) -> set[str]:
        """Return the models that nodes joined by a run."""
        query = select(joined.c.version).where(joined.c.project == self.project)
        return set(self.connection.execute(query.where(joined.c.seq == seq).distinct()).scalars())

    def joined_members(self) -> list[tuple[str, str, int]]:
        """Return version, role and number of joined nodes that took part in the training."""
        same = (
            (member.c.project == joined.c.project)
            & (member.c.version == joined.c.version)
            & (member.c.node_key == joined.c.node_key)
        )
        query = (
            select(joined.c.version, member.c.role, func.count())
            .join(member, same)
            .where(joined.c.project == self.project)
            .group_by(joined.c.version, member.c.role)
            .order_by(joined.c.version, member.c.role)
        )
        return [(row[0], row[1], int(row[2])) for row in self.connection.execute(query)]

    def consulted_joined(self) -> list[tuple[str, int]]:
        """Return version and number of joined nodes of runs that helped to choose the version."""
        same = (
            (consulted.c.project == joined.c.project)
            & (consulted.c.version == joined.c.version)
            & (consulted.c.seq == joined.c.evaluated_seq)
        )
        query = (
            select(joined.c.version, func.count(joined.c.node_key.distinct()))
            .join(consulted, same)
            .where(joined.c.project == self.project)
            .group_by(joined.c.version)
            .order_by(joined.c.version)
        )
        return [(row[0], int(row[1])) for row in self.connection.execute(query)]

    def learnt_by_ancestor(self, version: str, ancestor: str) -> int:
        """Return how many nodes calibrate a version that an ancestor trained on or stopped by."""
        learnt = select(member.c.node_key).where(
            member.c.project == self.project,
            member.c.version == ancestor,
            member.c.role.in_(("train", "validation")),
        )
        return self._count_calibrating(version, learnt)

    def consulted_by_ancestor(self, version: str, ancestor: str) -> int:
        """Return how many nodes calibrate a version of runs that helped to choose an ancestor."""
        same = (consulted.c.project == prediction.c.project) & (consulted.c.seq == prediction.c.seq)
        chosen_by = (
            select(prediction.c.node_key)
            .join(consulted, same)
            .where(prediction.c.project == self.project, consulted.c.version == ancestor)
        )
        return self._count_calibrating(version, chosen_by)

    def _count_calibrating(self, version: str, keys: Select[Any]) -> int:
        """How many nodes of some keys joined a version, or were drawn for it at its training."""
        drawn = select(member.c.node_key).where(
            member.c.project == self.project,
            member.c.version == version,
            member.c.role == "calibration",
            member.c.node_key.in_(keys),
        )
        came = select(joined.c.node_key).where(
            joined.c.project == self.project,
            joined.c.version == version,
            joined.c.node_key.in_(keys),
        )
        both = drawn.union(came).subquery()
        return int(self.connection.execute(select(func.count()).select_from(both)).scalar_one())

    def shadow_runs(self) -> list[Row]:
        """Return the shadow runs of candidates."""
        return self._rows(shadow_run)

    def shadow_coverage(self) -> list[Row]:
        """Return what audits counted of shadow sets."""
        return self._rows(shadow_coverage)

    def shadowed(self) -> set[tuple[str, int]]:
        """Return version and run of all shadow sets."""
        query = select(shadow_set.c.version, shadow_set.c.seq).where(
            shadow_set.c.project == self.project
        )
        return {(row[0], int(row[1])) for row in self.connection.execute(query.distinct())}

    def shadow_sets(self, version: str, seq: int) -> list[Row]:
        """Return a version's shadow sets in a run, each with the node's newest class."""
        same = (prediction.c.project == shadow_set.c.project) & (
            prediction.c.node_key == shadow_set.c.node_key
        )
        query = (
            select(shadow_set, prediction.c.label)
            .join(prediction, same)
            .where(
                shadow_set.c.project == self.project,
                shadow_set.c.version == version,
                shadow_set.c.seq == seq,
            )
        )
        return [row._asdict() for row in self.connection.execute(query)]

    def runs_named_by(self, table: Table) -> set[int]:
        """Return the runs that rows of a table with a column `seq` name."""
        query = select(table.c.seq).where(table.c.project == self.project).distinct()
        return {int(seq) for seq in self.connection.execute(query).scalars()}

    def member_versions(self) -> set[str]:
        """Return the model versions that have members."""
        query = select(member.c.version).where(member.c.project == self.project).distinct()
        return set(self.connection.execute(query).scalars())

    def rescore_blocks(self) -> list[list[Row]]:
        """Return the later evaluations by the time that they carry, oldest first."""
        rows = sorted(self._rows(rescore), key=lambda row: row["at_ns"])
        return [list(block) for _, block in groupby(rows, key=lambda row: row["at_ns"])]

    def _rows(self, table: Table) -> list[Row]:
        query = select(table).where(table.c.project == self.project)
        return [row._asdict() for row in self.connection.execute(query)]


def _of_entry() -> ColumnElement[bool]:
    return (worklist_entry.c.project == prediction.c.project) & (
        worklist_entry.c.node_key == prediction.c.node_key
    )


@contextmanager
def record_snapshot(store: Store, project: str, source: KeySource) -> Iterator[RecordReader]:
    """Open a reading transaction in which every query sees the same state, with the chain's key.

    The key may be rotated between the reading of its file and the snapshot: where the newest entry
    does not fit, both are read again.
    """
    for last in (False,) * RETRIES + (True,):
        with store.reading() as connection:
            store.hold_state(connection)
            newest = newest_entry(connection, project)
            key = current_key(connection, project, source)
            if last or newest is None or fits(newest, key):
                yield RecordReader(connection, project, key)
                return
        time.sleep(RETRY_SECONDS)
