"""What a run or an audit rests on, compared with its seals in the snapshot that it is read from.

A row that is edited for one run and then put back leaves nothing to compare afterwards. So a verb
reads inside one snapshot, and compares in it, before it uses them, the rows that it reads: runs,
the known classes, and the predictions of the runs that matter now. Blocks of rows are compared by
their digests (`block_digests`); a block that differs is compared once more by Python's texts.

    with workspace.store.at_one_moment() as store, store.reading() as connection:
        basis = Basis(connection, project, key)
        basis.require_runs()
        basis.require_labels()
        basis.require_predictions(answered)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, func, select

from ringfence.connector.prediction_table import FurtherSet
from ringfence.connector.records import NodeGroup, Prediction
from ringfence.connector.store.audit_chain.basis import shadow_rows
from ringfence.connector.store.audit_chain.basis.activations import require_activations
from ringfence.connector.store.audit_chain.basis.alarm_states import KINDS as ALARM_KINDS
from ringfence.connector.store.audit_chain.basis.alarm_states import require_alarm_states
from ringfence.connector.store.audit_chain.basis.coverage_rows import (
    AUDITED,
    require_coverage_rows,
)
from ringfence.connector.store.audit_chain.block_digests import (
    BlockDigest,
    RunDigests,
    digest_groups,
    digest_run,
)
from ringfence.connector.store.audit_chain.label_basis import find_label_differences
from ringfence.connector.store.audit_chain.preflight_check import (
    model_difference,
    refuse_difference,
)
from ringfence.connector.store.audit_chain.run_comparison import changed_run_columns
from ringfence.connector.store.audit_chain.sealed_entries import Body, SealedEntries, require_sealed
from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.groups import groups_digest, groups_of_run
from ringfence.connector.store.predictions import band_digest, degree_digest, payload_digest
from ringfence.connector.store.retention.removals import KIND as REMOVED
from ringfence.connector.store.retention.removals import kept_digest
from ringfence.connector.store.rows import alarm_from_row
from ringfence.connector.store.tables import alarm, further_set, lease, model, prediction, run
from ringfence.connector.store.thresholds.recorded import (
    further_digest,
    read_thresholds,
    thresholds_digest,
)

KINDS = ("decided", "classes", "grouped", "marked", "trained", AUDITED, *shadow_rows.KINDS,
         *ALARM_KINDS)  # fmt: skip


class Basis:
    """The rows of one snapshot that a verb is about to rest on; differences raise `StoreError`."""

    def __init__(self, connection: Connection, project: str, key: bytes) -> None:
        self.connection, self.project, self.key = connection, project, key

    @cached_property
    def sealed(self) -> SealedEntries:
        """The entries that seal such rows, of a chain that was checked whole."""
        return require_sealed(self.connection, self.project, self.key, KINDS)

    @cached_property
    def decided(self) -> dict[int, Body]:
        """The entries that decided runs, by the run's number."""
        return {int(body["run"]["seq"]): body for body in self.sealed.of_kind("decided")}

    def require_runs(self) -> None:
        """Compare every run's row, the lease's, and the manifests."""
        for difference in (*self._run_differences(), *self._manifest_differences()):
            refuse_difference(difference)

    def require_labels(self, *, counted: bool = False) -> None:
        """Compare every known class; with `counted` also whether sets held it."""
        bodies = self.sealed.of_kind("classes")
        for difference in find_label_differences(self.connection, self.project, bodies, counted):
            refuse_difference(difference)

    def require_model(self, version: str) -> None:
        """Compare manifest, members, corrections and joined nodes of a version."""
        refuse_difference(model_difference(self.connection, self.project, self.key, version))

    def require_active(self, version: str | None) -> None:
        """Compare every change of the version in use, and that `version` is the one in use."""
        activations = require_activations(self.connection, self.project, self.sealed)
        active = activations[-1].version if activations else None
        if active != version:
            refuse_difference(f"the version in use is {active}, but {version} was read as such")

    def require_never_used(self, version: str) -> None:
        """Compare every change of the version in use, and that `version` never was."""
        activations = require_activations(self.connection, self.project, self.sealed)
        if any(version in (activation.version, activation.was) for activation in activations):
            refuse_difference(f"model {version} was in use, but was read as a candidate")

    def require_predictions(self, seqs: Collection[int], *, counted: bool = False) -> None:
        """Compare the predictions of some runs; with `counted` all that an audit counts of them."""
        for seq in sorted(seqs):
            for difference in self._prediction_differences(seq, counted):
                refuse_difference(difference)

    def require_coverage(self) -> None:
        """Compare the coverage rows that earlier audits left."""
        require_coverage_rows(self.connection, self.project, self.sealed)

    def require_consulted(self) -> None:
        """Compare the runs that helped to choose versions."""
        shadow_rows.require_consulted(self.connection, self.project, self.sealed)

    def require_shadow_counts(self, version: str) -> None:
        """Compare which nodes have a version's shadow sets; after `require_labels`."""
        shadow_rows.require_shadow_counts(self.connection, self.project, self.sealed, version)

    def require_alarms(self) -> None:
        """Compare the states that the last check of alarms left."""
        query = select(alarm).where(alarm.c.project == self.project)
        rows = [alarm_from_row(row) for row in self.connection.execute(query)]
        require_alarm_states(self.sealed, {state.rule: state for state in rows})

    def require_groups(self) -> None:
        """Compare the groups of every run's nodes."""
        recorded = {int(body["seq"]): body["groups"] for body in self.sealed.of_kind("grouped")}
        done = max((body["grouped_seq"] for body in self.sealed.of_kind("marked")), default=0)
        stored = digest_groups(self.connection, self.project)
        for seq in sorted({*recorded, *(seq for seq in stored if seq <= done)}):
            if stored.get(seq, BlockDigest(0, "")).digest != recorded.get(seq):
                groups = groups_of_run(self.connection, self.project, seq)
                if "degrees" in self.decided.get(seq, {}) or seq in recorded:
                    self._require_group_digest(seq, groups, recorded.get(seq))

    def _require_group_digest(
        self, seq: int, groups: list[NodeGroup], recorded: str | None
    ) -> None:
        if groups_digest(groups) != (groups_digest([]) if recorded is None else recorded):
            refuse_difference(f"the groups of run {seq} are not those that were recorded")

    def _run_differences(self) -> Iterator[str]:
        query = select(run).where(run.c.project == self.project)
        rows = {row.seq: row._asdict() for row in self.connection.execute(query)}
        for seq in sorted({*rows, *self.decided}):
            if seq not in rows or seq not in self.decided:
                yield f"run {seq} stands in one of SQL and the audit chain alone"
            elif changed := changed_run_columns(rows[seq], self.decided[seq]):
                yield f"run {seq}: {', '.join(changed)} changed after the decision"
        leases = select(lease.c.next_seq, lease.c.watermark_ns)
        row = self.connection.execute(leases.where(lease.c.project == self.project)).first()
        last = max(self.decided, default=0)
        if row is not None and row.next_seq != last + 1:
            yield f"lease: next_seq is {row.next_seq}, but the last run left {last + 1}"
        watermark = self.decided[last]["run"]["watermark_to_ns"] if last else None
        if row is not None and row.watermark_ns != watermark:
            yield f"lease: watermark_ns is {row.watermark_ns}, but the last run left {watermark}"

    def _manifest_differences(self) -> Iterator[str]:
        recorded = {body["version"]: body for body in self.sealed.of_kind("trained")}
        columns = model.c.version, model.c.manifest, model.c.trained_ns
        query = select(*columns).where(model.c.project == self.project)
        for version, manifest, trained_ns in self.connection.execute(query):
            body = recorded.get(version, {})
            if body.get("manifest_sha256") != hashlib.sha256(manifest.encode()).hexdigest():
                yield f"the manifest of model {version} is not the one that was recorded"
            elif body.get("trained_ns", trained_ns) != trained_ns:
                yield f"model {version}: trained_ns is {trained_ns}, not the time on record"

    def _prediction_differences(self, seq: int, counted: bool) -> Iterator[str]:
        body = self.decided.get(seq)
        if body is None:
            yield f"run {seq} was never decided"
            return
        sealed = self._sealed_digests(seq, body, counted)
        digests = digest_run(self.connection, self.project, seq, payload_only=not counted)
        if not _agrees(digests, sealed):
            rows = self._prediction_rows(seq)
            pruned = sealed["payload"] != body["predictions"]
            if not _agrees(_digest_rows(rows, pruned), sealed):
                yield f"run {seq}: its predictions are not those that were decided"
        if counted:
            yield from self._count_differences(seq, body)

    def _sealed_digests(self, seq: int, body: Body, counted: bool) -> Mapping[str, Any]:
        """What the chain has of a run's predictions, by the name of `RunDigests`."""
        kept = {
            removal["seq"]: removal["kept"]
            for removed in self.sealed.of_kind(REMOVED)
            for removal in removed["runs"]
        }
        sealed = {
            "nodes": body["run"]["n_evaluated"],
            "payload": kept.get(seq, body["predictions"]),
            "degrees": body.get("degrees") if counted else None,
            "bands": body.get("bands") if counted else None,
        }
        return {name: value for name, value in sealed.items() if value is not None}

    def _count_differences(self, seq: int, body: Body) -> Iterator[str]:
        """Compare sizes, further sets and thresholds of a run."""
        of, json_length = prediction.c, DIALECTS[self.connection.dialect.name].json_length
        other = select(func.count()).where(
            of.project == self.project, of.seq == seq, of.size != json_length(of.classes)
        )
        if self._count(other):
            yield f"run {seq}: size of some predictions is not that of their set"
        thresholds = read_thresholds(self.connection, self.project, seq)
        if thresholds_digest(thresholds) != body.get("thresholds", thresholds_digest([])):
            yield f"the thresholds of run {seq} are not those that were decided"
        columns = further_set.c.node_key, further_set.c.alpha, further_set.c.size
        query = select(*columns).where(further_set.c.project == self.project)
        rows = self.connection.execute(query.where(further_set.c.seq == seq))
        sets = [FurtherSet(*row) for row in rows]
        if further_digest(sets) != body.get("further_sets", further_digest([])):
            yield f"the sets of run {seq} at further alphas are not those that were decided"

    def _prediction_rows(self, seq: int) -> list[Mapping[str, Any]]:
        of = prediction.c
        query = select(prediction).where(of.project == self.project, of.seq == seq)
        return [row._asdict() for row in self.connection.execute(query)]

    def _count(self, query: Any) -> int:
        return int(self.connection.execute(query).scalar_one())


def _digest_rows(rows: Sequence[Mapping[str, Any]], pruned: bool) -> RunDigests | None:
    """Digest predictions by Python's texts; None where some can't be read."""
    try:
        stored = [_stored_prediction(row, pruned) for row in rows]
        payload = kept_digest(rows) if pruned else payload_digest(stored)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return RunDigests(len(rows), payload, degree_digest(stored), band_digest(stored))


def _stored_prediction(row: Mapping[str, Any], pruned: bool) -> Prediction:
    """A row as a record; retention left other texts, which have a digest of their own."""
    texts = () if pruned else (row["classes"], row["p_values"], row["scores"])
    classes, p_values, scores = [tuple(json.loads(t)) for t in texts] or ((), (0.0,), ())
    return Prediction(row["node_key"], classes, p_values, scores, row["degree"], row["band"])


def _agrees(digests: RunDigests | None, sealed: Mapping[str, Any]) -> bool:
    return digests is not None and all(
        getattr(digests, name) == value for name, value in sealed.items()
    )
