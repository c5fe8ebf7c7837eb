"""`ringfence reconcile`: find what the graph and the stores disagree on, show it, repair it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ringfence.connector import mirror as mirrors
from ringfence.connector import projection, runs
from ringfence.connector.comparison import Difference, differences
from ringfence.connector.mirror import Mirror
from ringfence.connector.models import manifest_of
from ringfence.connector.refresh import Progress, identity, refresh
from ringfence.connector.runs import Writer
from ringfence.jobs.applying import anchor_head, recover, refuse_older_store
from ringfence.jobs.marking import mark_evaluated
from ringfence.jobs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class MirrorChange:
    """What a full read shows that the mirror did not have."""

    missed: int
    deleted: int
    changed: int
    edges_missed: int
    edges_deleted: int

    @property
    def clean(self) -> bool:
        """Whether the mirror was right."""
        return not (
            self.missed or self.deleted or self.changed or self.edges_missed or self.edges_deleted
        )


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What was found, and whether it was repaired."""

    finished_runs: tuple[int, ...]
    mirror: MirrorChange
    projections: dict[str, int]
    examples: tuple[Difference, ...]
    repaired: bool

    @property
    def clean(self) -> bool:
        """Whether there was nothing to repair."""
        return not self.finished_runs and self.mirror.clean and not self.projections


def run_reconcile(
    workspace: Workspace,
    *,
    repair: bool,
    progress: Progress = lambda _what, _done, _all: None,
) -> ReconcileReport:
    """Compare everything; with `repair`, put it right. Nothing is ever computed again."""
    workspace.require_migrated()
    with workspace.writer() as writer:
        refuse_older_store(workspace, writer)
        unfinished = tuple(runs.undone(workspace.store, workspace.project))
        if repair:
            recover(workspace, writer, progress)
        name = identity(workspace.graph, workspace.mapping)
        before = mirrors.load(workspace.mirror, name)
        after = refresh(workspace.reader(progress), whole=True).mirror
        change = _compare(before, after)
        found = list(
            differences(workspace.store, workspace.graph, workspace.mapping, workspace.project)
        )
        if repair:
            _mend(workspace, writer, found)
            mark_evaluated(workspace, after)
            mirrors.save(after, workspace.mirror)
            anchor_head(workspace, writer)
    kinds = dict(Counter(str(one.kind) for one in found))
    return ReconcileReport(unfinished, change, kinds, tuple(found[:20]), repair)


def _compare(before: Mirror | None, after: Mirror) -> MirrorChange:
    if before is None:
        return MirrorChange(0, 0, 0, 0, 0)
    old = {key: row for row, key in enumerate(before.keys)}
    new = {key: row for row, key in enumerate(after.keys)}
    both = [key for key in new if key in old]
    mine, theirs = [old[key] for key in both], [new[key] for key in both]
    moved = (before.features[mine] != after.features[theirs]).any(axis=1)
    names = [*before.class_names, None]
    after_names = [*after.class_names, None]
    relabelled = [
        names[before.classes[a]] is not None
        and names[before.classes[a]] != after_names[after.classes[b]]
        for a, b in zip(mine, theirs, strict=True)
    ]
    edges, now = _edge_keys(before), _edge_keys(after)
    return MirrorChange(
        missed=len(new) - len(both),
        deleted=len(old) - len(both),
        changed=int((moved | np.array(relabelled, np.bool_)).sum()) if both else 0,
        edges_missed=len(now - edges),
        edges_deleted=len(edges - now),
    )


def _edge_keys(mirror: Mirror) -> set[tuple[str, str, int]]:
    source, target, kind = mirror.edges.tolist()
    return {
        (mirror.keys[a], mirror.keys[b], k) for a, b, k in zip(source, target, kind, strict=True)
    }


def _mend(workspace: Workspace, writer: Writer, found: Sequence[Difference]) -> None:
    for seq, group in groupby(found, key=lambda one: one.seq):
        by_kind: dict[str, list[str]] = {}
        for one in group:
            by_kind.setdefault(one.kind, []).append(one.node_key)
        damaged = [*by_kind.get("not projected", []), *by_kind.get("set differs", [])]
        _project_again(workspace, writer, seq, damaged)
        if strays := by_kind.get("stray"):
            names = [key.removesuffix(" (on another node)") for key in strays]
            projection.remove_strays(workspace.graph, writer.lease, names)
        runs.mark_gone(writer, by_kind.get("node gone", []))


def _project_again(workspace: Workspace, writer: Writer, seq: int, keys: Sequence[str]) -> None:
    if not keys:
        return
    row = runs.one_run(workspace.store, workspace.project, seq)
    classes = json.loads(manifest_of(workspace.store, workspace.project, row.model))["classes"]
    projection.write_run(workspace.graph, writer.lease, row, classes)
    size = workspace.settings.engine.write_rows
    for start in range(0, len(keys), size):
        block = runs.some_predictions(
            workspace.store, workspace.project, keys[start : start + size]
        )
        sets = projection.prepare_sets(block, classes)
        projection.mend_sets(workspace.graph, writer.lease, workspace.mapping, row, sets)
