"""`ringfence rescore`: look again at nodes on purpose, with a reason, and without a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.keys import encode_key
from ringfence.connector.mirror import Mirror
from ringfence.connector.models import members, newest_manifest
from ringfence.connector.refresh import Progress, refresh
from ringfence.connector.rescores import record_rescores
from ringfence.jobs import forwarding, model_files
from ringfence.jobs.applying import anchor_head, recover, refuse_older_store
from ringfence.jobs.deciding import look, predictions
from ringfence.jobs.stopwatch import Stopwatch
from ringfence.jobs.workspace import Workspace

NO_GUARANTEE = (
    "no guarantee: the promise holds for a node's first set only; these are kept apart and count "
    "in no coverage"
)


@dataclass(frozen=True, slots=True)
class RescoreReport:
    """The later looks that were taken."""

    reason: str
    model: str
    sets: dict[str, tuple[str, ...]]
    guarantee: str = NO_GUARANTEE


def run_rescoring(
    workspace: Workspace,
    keys: Sequence[str],
    reason: str,
    progress: Progress = lambda _what, _done, _all: None,
) -> RescoreReport:
    """Evaluate `keys` (as typed on a command line) on the graph as it is now."""
    if not reason.strip():
        raise ConfigError(found="no reason was given", needed='--reason "why a second look"')
    workspace.require_migrated()
    with workspace.writer() as writer:
        refuse_older_store(workspace, writer)
        recover(workspace, writer, progress)
        recorded = newest_manifest(workspace.store, workspace.project)
        model = model_files.load(workspace.models, recorded)
        mirror = refresh(workspace.reader(progress)).mirror
        rows = np.array([_row(mirror, key) for key in keys], np.int64)
        known = members(workspace.store, workspace.project, model.version, "calibration")
        graph = forwarding.incidence(mirror, workspace.mapping)
        seen = look(workspace, model, mirror, known, graph, rows, Stopwatch())
        looks = predictions(mirror, rows, seen, model.classes)
        alpha = workspace.settings.conformal.alpha
        record_rescores(writer, model.version, alpha, reason, looks)
        mirrors.save(mirror, workspace.mirror)
        forwarding.keep(workspace.tables, model, mirror)
        anchor_head(workspace, writer)
    return RescoreReport(reason, model.version, {one.node_key: one.classes for one in looks})


def _row(mirror: Mirror, key: str) -> int:
    """A key typed by a person may mean a number or a text; the graph knows which."""
    numbers = [encode_key(int(key))] if key.lstrip("-").isdigit() else []
    for row in mirror.find([key, *numbers, encode_key(key)]).tolist():
        if row >= 0:
            return int(row)
    raise GraphError(
        found=f"no node with the key {key} is in the graph",
        needed="keys of existing nodes",
        next_step="ringfence status",
    )
