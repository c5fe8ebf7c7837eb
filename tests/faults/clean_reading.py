"""What a run should have decided: the graph read anew into an empty folder, everything computed.

Only the newest run can be compared, where nothing was written to the graph since it read.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select

from ringfence.connector.keys import encode_key
from ringfence.connector.progress import no_progress
from ringfence.connector.records import Member
from ringfence.connector.store import tables
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.store.models import active_manifest, manifest_of, members
from ringfence.connector.store.runs import one_run
from ringfence.jobs.project.graph_read import read_graph
from ringfence.jobs.project.holdout import held_out_keys
from ringfence.jobs.project.model_files import load_model
from ringfence.jobs.project.promise import terms_in_force
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.calibration_set import CalibrationSet
from ringfence.jobs.scoring.calibration.settled_runs import (
    UsualLabels,
    find_settled,
    settled_members,
    usual_labels,
)
from ringfence.jobs.scoring.node_evaluation import evaluate_nodes
from ringfence.jobs.scoring.version_on_graph import calibrate_version
from tests.faults.case import Case
from tests.known_nodes import ListedNodes

TOLERANCE = 1e-5  # of scores; a p-value may move by one rank


def wrong_classes(case: Case) -> list[str]:
    """Calibration nodes that count otherwise than the graph says."""
    manifest = json.loads(active_manifest(case.store, case.name))
    version, classes = manifest["version"], manifest["classes"]
    counted = {
        member.node_key: classes[member.class_index]
        for member in calibration_members(case.store, case.name, version, classes)
    }
    recorded = members(case.store, case.name, version, "calibration")
    there = case.graph.read(
        f"MATCH (n:{case.label}) WITH n, n.created_at AS t RETURN n.id AS id, n.kind AS kind, "
        "t.epochSeconds * 1000000000 + t.nanosecond AS ns"
    )
    now = {encode_key(row["id"]): (row["kind"], row["ns"]) for row in there}
    wrong = []
    for member in recorded:
        if member.node_key not in now:  # a run leaves it out by itself
            continue
        kind, ns = now[member.node_key]
        expected = kind if ns == member.created_ns else None
        if counted.get(member.node_key) != expected:
            was = counted.get(member.node_key)
            wrong.append(f"{member.node_key} counts as {was}, the graph has {expected}")
    return wrong


def stale_sets(case: Case, seq: int) -> list[str]:
    """Sets of the run `seq` that a clean reading does not give."""
    of = tables.prediction.c
    with case.store.reading() as connection:
        query = select(tables.prediction).where(of.project == case.name, of.seq == seq)
        rows = list(connection.execute(query))
    if not rows:
        return []
    with tempfile.TemporaryDirectory() as folder:
        computed = _compute(case.workspace, Path(folder), seq, [row.node_key for row in rows])
    return [
        f"{row.node_key} of run {seq} has other scores in a clean reading"
        for row in rows
        if row.node_key in computed and _differs(row, *computed[row.node_key])
    ]


def _compute(
    workspace: Workspace, folder: Path, seq: int, keys: list[str]
) -> dict[str, tuple[list[float], list[float], int]]:
    """Scores, p-values and the number of calibration nodes for each key."""
    fresh = _in_folder(workspace, folder)
    mirror = read_graph(fresh, None, no_progress, whole=True).mirror
    # the active version may be another
    version = one_run(workspace.store, workspace.project, seq).model
    recorded = manifest_of(workspace.store, workspace.project, version)
    model = load_model(workspace.models, recorded)
    known = calibration_members(workspace.store, workspace.project, model.version, model.classes)
    joined = _joined_until(workspace, model.version, model.classes, seq)
    never = held_out_keys(model.manifest, [member.node_key for member in joined])
    joined = [member for member in joined if member.node_key not in never]
    terms = terms_in_force(workspace.settings.conformal, model.manifest)
    usual = usual_labels(model.manifest, terms)
    known = [*_settled(workspace, model.version, known, seq, len(joined), usual), *joined]
    here = [key for key, row in zip(keys, mirror.find(keys).tolist(), strict=True) if row >= 0]
    calibrated = replace(
        calibrate_version(workspace, model, mirror, at_alpha=True, tables=folder / "tables"),
        calibration=CalibrationSet(tuple(known), (), (), 0, {}),
    )
    done = evaluate_nodes(calibrated, mirror.find(here))
    columns = zip(here, done.result.scores.tolist(), done.result.p_values.tolist(), strict=True)
    return {key: (scores, p, done.result.n_calibration) for key, scores, p in columns}


def _joined_until(
    workspace: Workspace, version: str, classes: Sequence[str], seq: int
) -> list[Member]:
    """Evaluated nodes that calibrate the run `seq`; the window is never full here."""
    return [
        Member(node.node_key, "calibration", classes.index(node.label))
        for node in KnownNodes(workspace.store, workspace.project, version).all_joined()
        if node.joined_by is not None and node.joined_by <= seq
    ]


def _settled(
    workspace: Workspace,
    version: str,
    base: Sequence[Member],
    seq: int,
    others: int,
    usual: UsualLabels,
) -> list[Member]:
    """Calibration nodes of the training that counted for the run `seq`, by what it could know.

    Those of runs whose classes were not known as far as usual wait, where enough others are left.
    """
    store, project = workspace.store, workspace.project
    decided = one_run(store, project, seq).decided_ns
    runs = [run for run in run_counts(store, project) if run.seq < seq]
    seen = [
        node
        for node in KnownNodes(store, project, version).all()
        if node.evaluated_in < seq and node.noticed_ns < decided
    ]
    evaluated_in = {node.node_key: node.evaluated_in for node in seen if node.role}
    ready = find_settled(ListedNodes(seen).counts(), runs, usual).seqs
    return settled_members(base, evaluated_in, ready, others)


def _in_folder(workspace: Workspace, folder: Path) -> Workspace:
    """The project with an empty folder: nothing that a run keeps is used or touched."""
    settings = workspace.settings
    engine = settings.engine.model_copy(update={"folder": folder})
    return replace(workspace, settings=settings.model_copy(update={"engine": engine}))


def _differs(row: Any, scores: list[float], p: list[float], n: int) -> bool:
    stored, stored_p = json.loads(row.scores), json.loads(row.p_values)
    moved = np.abs(np.subtract(stored, scores)).max() > TOLERANCE
    return bool(moved or np.abs(np.subtract(stored_p, p)).max() > 1.5 / (n + 1))
