"""Compare model versions on the holdout, on the graph as it is now, and put it on record.

The nodes are those of known class in the holdout that no compared version used for training, early
stopping or calibration. Sets are those that the next run would give at the configured alpha: each
version by its own promise and calibration nodes, without an adaptive level's shift. The runs' own
cached tables are not touched.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ModelError, RingfenceError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.mirror import UNKNOWN, Mirror, find_recorded, record_keys_at
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.audit_chain.preflight_check import require_sound_model
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.lifecycle.comparisons import StoredComparison, record_comparison
from ringfence.connector.store.models import manifest_of, members
from ringfence.connector.store.writer import Writer
from ringfence.jobs import inference
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.lifecycle.comparison import (
    HoldoutReport,
    compare_by,
    holdout_report,
    result_json,
)
from ringfence.jobs.lifecycle.graph_benefit import VERDICTS, GraphBenefit
from ringfence.jobs.lifecycle.promotion import find_version
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.holdout import MIN_NODES, holdout_of
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import terms_in_force
from ringfence.jobs.project.sealed_basis import activations_on_record, on_record
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.evaluation_flags import mark_evaluated
from ringfence.jobs.scoring.node_evaluation import evaluate_nodes
from ringfence.jobs.scoring.version_on_graph import calibrate_on_record
from ringfence.jobs.training.baselines import Learnt, baseline_outcomes
from ringfence.models.comparison.outcome import Outcome, Sets, align
from ringfence.models.comparison.paired import compare
from ringfence.models.inference import neighbour_counts
from ringfence.models.scores import softmax64

Ints = NDArray[np.int64]
MAX_NAMED = 8


@dataclass(frozen=True, slots=True)
class ComparedNodes:
    """The nodes of a comparison: rows of the mirror, keys, and classes by place in `classes`."""

    rows: Ints
    keys: list[str]
    truth: Ints
    classes: tuple[str, ...]

    def digest(self) -> str:
        """Return one hash over keys and classes, in the order of the keys."""
        names = [self.classes[at] for at in self.truth.tolist()]
        pairs = sorted(zip(self.keys, names, strict=True))
        return hashlib.sha256("".join(dumps(list(pair)) for pair in pairs).encode()).hexdigest()


def run_comparison(
    workspace: Workspace,
    version: str,
    against: str | None = None,
    progress: Progress = no_progress,
) -> HoldoutReport:
    """Compare a version with another one, by default with the active one, and record it.

    The active version alone is compared with the baselines.
    """
    first = find_version(workspace, version)
    active = activations_on_record(workspace)
    other = find_version(workspace, against) if against else active[-1].version if active else None
    if against is not None and other == first:
        raise ModelError(
            found=f"{first} on both sides",
            needed="two versions",
            next_step=f"ringfence models compare {first}   (with the baselines alone)",
        )
    load_version(workspace, first)  # before the mirror follows another mapping
    with write_session(workspace, progress) as session:
        for compared in {first, other} - {None}:
            require_sound_model(session.writer, str(compared))
        mirror = read_graph(workspace, session.writer, progress).mirror
        mark_evaluated(workspace, mirror, session.writer)
        done = compare_and_record(
            workspace, session.writer, mirror, first, None if other == first else other, progress
        )
        save_graph(workspace, mirror)
    return holdout_report(done)


def compare_and_record(
    workspace: Workspace,
    writer: Writer,
    mirror: Mirror,
    version: str,
    against: str | None,
    progress: Progress = no_progress,
) -> StoredComparison:
    """Compare a version with another one, and with the baselines, and record the result."""
    other, result = compute_comparison(workspace, mirror, version, against, progress)
    return record_comparison(writer, version, other, result)


def _describe_benefit(model: SavedModel) -> list[str]:
    """What the relationships bring to a version, as its training found out."""
    benefit = GraphBenefit.from_manifest(model.manifest)
    if benefit is None:
        return []
    told = [VERDICTS[benefit.verdict]] + [benefit.describe_leak()] * benefit.is_suspicious
    return [f"{model.version}: {sentence}" for sentence in told]


def compute_comparison(
    workspace: Workspace,
    mirror: Mirror,
    version: str,
    against: str | None,
    progress: Progress = no_progress,
) -> tuple[str | None, JsonObject]:
    """Return the other version that was compared, if any, and the result; nothing is written.

    If the other version can't run on this graph, or there are too few nodes that neither learnt
    from, the version is compared with the baselines alone, and the record says why.
    """
    model = load_version(workspace, version)
    other, reason = _other(workspace, against)
    nodes = find_nodes(workspace, mirror, [model, *([other] if other else [])])
    if other is not None and len(nodes.rows) < MIN_NODES:
        reason = f"{len(nodes.rows)} nodes of the holdout are left that neither learnt from"
        other, nodes = None, find_nodes(workspace, mirror, [model])
    if len(nodes.rows) < MIN_NODES:
        raise ModelError(
            found=f"{len(nodes.rows)} nodes of known class that {version} neither learnt from nor "
            f"is calibrated with; {MIN_NODES} are needed",
            needed="a holdout ([model] holdout), and enough labelled nodes in it",
            next_step="label more nodes, then: ringfence train",
        )
    models = [model, *([other] if other else [])]
    outcomes = []
    for done, compared in enumerate(models):
        progress("comparing versions", done, len(models) + 1)
        outcomes.append(version_outcome(workspace, compared, mirror, nodes))
    progress("comparing with trees", len(models), len(models) + 1)
    learnt = learnt_nodes(workspace, mirror, version, nodes.classes)
    baselines, notes = baseline_outcomes(
        workspace, mirror, model, learnt, nodes.rows, len(nodes.classes)
    )
    comparison = compare(nodes.truth, nodes.classes, [*outcomes, *baselines])
    notes += [note for compared in models for note in unknown_classes(compared, nodes)]
    if against is not None and reason:
        notes.insert(0, f"not compared with {against}: {reason}")
    result = result_json(
        comparison,
        [compared.version for compared in models],
        notes,
        by=compare_by(workspace.settings),
        alpha=workspace.settings.conformal.first_alpha,
        nodes_sha256=nodes.digest(),
    )
    result["graph"] = [told for compared in models for told in _describe_benefit(compared)]
    return other.version if other else None, result


def load_version(workspace: Workspace, version: str) -> SavedModel:
    """Return a version that can run on this project's graph; raise where it can't."""
    recorded = manifest_of(workspace.store, workspace.project, version)
    require_mapping(workspace.mapping, recorded)
    return model_files.load_model(workspace.models, recorded)


def _other(workspace: Workspace, against: str | None) -> tuple[SavedModel | None, str]:
    if against is None:
        return None, ""
    try:
        return load_version(workspace, against), ""
    except RingfenceError as error:
        return None, error.found


def find_nodes(workspace: Workspace, mirror: Mirror, models: Sequence[SavedModel]) -> ComparedNodes:
    """Return the labelled nodes of the holdout that none of the versions has learnt from.

    Versions from before there was a holdout may have learnt from some of it: those are left out.
    """
    rows = np.flatnonzero(mirror.classes != UNKNOWN)
    keys = mirror.keys.take(rows.tolist())
    holdouts = [holdout for model in models if (holdout := holdout_of(model.manifest)) is not None]
    fit = np.full(len(rows), bool(holdouts))
    for holdout in holdouts:
        fit &= holdout.contains(keys)
    with on_record(workspace) as (held, basis):
        for model in models:
            basis.require_model(model.version)
        used = set().union(*(_used_keys(held, model) for model in models))
    fit &= np.array([key not in used for key in record_keys_at(mirror, rows)], np.bool_)
    if any(_needs_neighbours(workspace, model) for model in models):
        graph = inference.inference_graph(mirror, workspace.mapping)
        fit &= neighbour_counts(graph, rows) > 0
    keys = [key for key, inside in zip(keys, fit.tolist(), strict=True) if inside]
    names = sorted(
        {name for model in models for name in model.classes}
        | {mirror.class_names[at] for at in mirror.classes[rows[fit]].tolist()}
    )
    place = np.array([names.index(name) if name in names else -1 for name in mirror.class_names])
    truth = place[mirror.classes[rows[fit]]] if len(place) else np.empty(0, np.int64)
    return ComparedNodes(rows[fit], keys, np.asarray(truth, np.int64), tuple(names))


def _used_keys(workspace: Workspace, model: SavedModel) -> set[str]:
    """Nodes that shaped a version or its sets: trained, stopped, calibrated with.

    A version with a holdout lets none of it join its calibration.
    """
    store, project = workspace.store, workspace.project
    learnt = members(store, project, model.version)
    used = {member.node_key for member in learnt if member.role != "holdout"}
    if holdout_of(model.manifest) is None:
        joined = KnownNodes(store, project, model.version).all_joined()
        used |= {node.node_key for node in joined}
    return used


def unknown_classes(model: SavedModel, nodes: ComparedNodes) -> list[str]:
    """Say which classes of the compared nodes a version does not know: it misses all of them."""
    seen = [nodes.classes[at] for at in np.unique(nodes.truth).tolist()]
    if not (missing := [name for name in seen if name not in model.classes]):
        return []
    count = sum(nodes.classes[at] in missing for at in nodes.truth.tolist())
    named = ", ".join(missing[:MAX_NAMED]) + (" and others" if len(missing) > MAX_NAMED else "")
    return [f"{model.version} does not know {named}, and misses all of their {count:,} nodes"]


def _needs_neighbours(workspace: Workspace, model: SavedModel) -> bool:
    return terms_in_force(workspace.settings.conformal, model.manifest).rule_kind.needs_neighbours


def learnt_nodes(
    workspace: Workspace, mirror: Mirror, version: str, classes: Sequence[str]
) -> Learnt:
    """Return the nodes that a version trained and stopped on, as far as they are still there."""
    with on_record(workspace) as (held, basis):
        basis.require_model(version)
        known = members(held.store, held.project, version)
    keys = sorted(member.node_key for member in known if member.role in ("train", "validation"))
    rows = find_recorded(mirror, keys)
    rows = rows[rows >= 0]
    rows = rows[mirror.classes[rows] != UNKNOWN]
    place = np.array([classes.index(n) if n in classes else -1 for n in mirror.class_names])
    truth = place[mirror.classes[rows]]
    return Learnt(rows[truth >= 0], truth[truth >= 0])


def version_outcome(
    workspace: Workspace, model: SavedModel, mirror: Mirror, nodes: ComparedNodes
) -> Outcome:
    """Return probabilities and sets that a version gives the nodes on the graph as it is now.

    What it is calibrated with is compared with its seals in the snapshot that it is read from.
    """
    with tempfile.TemporaryDirectory(dir=workspace.folder) as folder:
        tables = Path(folder) / "tables"
        with on_record(workspace) as (held, basis):
            calibrated = calibrate_on_record(
                held, basis, model, mirror, at_alpha=True, tables=tables
            )
        version = replace(calibrated, workspace=workspace)
        evaluation = evaluate_nodes(version, nodes.rows)
        passed = engine_of(workspace.settings.engine).outputs_at(
            version.tables, model, mirror, workspace.mapping, version.graph, nodes.rows
        )
    chances = align(softmax64(passed.logits), model.classes, nodes.classes)
    inside = align(evaluation.result.sets[0].astype(np.float64), model.classes, nodes.classes) > 0
    covered = inside[np.arange(len(nodes.truth)), nodes.truth]
    return Outcome(model.version, chances, Sets(inside.sum(axis=1), covered))
