"""Who calibrates a run, and at which levels: the training split, and nodes that became known since.

Everything follows from the audit store as it stands when the run begins: which evaluated nodes have
a class, when it was noticed, which of them joined by an earlier run, and the levels that runs used.
So a run that is repeated after a crash decides the same, and an auditor can follow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import JoinedNode, KnownNode, Member, RunCount
from ringfence.connector.store.calibration.joined import known_nodes, run_counts
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.models import hashing
from ringfence.models.calibration.cohort import settled
from ringfence.models.calibration.window import newest, newest_with_classes

DRAW = "window"  # purpose of the hashed uniforms that choose at the window's border
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LivingSet:
    """Who calibrates a run.

    members: calibration nodes of this run.
    joining: evaluated nodes that count from this run on.
    answered: runs whose miss rates the level takes in now; `waiting` earlier ones are still open.
    joined: nodes among `members` that were evaluated, by the run that evaluated them.
    """

    members: tuple[Member, ...]
    joining: tuple[JoinedNode, ...]
    answered: tuple[int, ...]
    waiting: int
    joined: Mapping[int, int]


def living_set(
    workspace: Workspace, model: SavedModel, terms: PromiseTerms, base: Sequence[Member]
) -> LivingSet:
    """Return who calibrates the next run; the training split alone where nothing else is asked."""
    if terms.calibration_set == "frozen" and not terms.adapt:
        return LivingSet(tuple(base), (), (), 0, {})
    promised = range(len(model.classes)) if terms.promise == "class" else ()
    return choose_calibration(
        base,
        known_nodes(workspace.store, workspace.project, model.version),
        run_counts(workspace.store, workspace.project, model.version),
        model.classes,
        calibration_set=terms.calibration_set,
        window_nodes=terms.window_nodes,
        promised=list(promised),
        seed=model.manifest["seed"],
    )


def describe_living_set(living: LivingSet, terms: PromiseTerms) -> list[str]:
    """Return notes of the run: who calibrates it, and who has joined."""
    if terms.calibration_set == "frozen":
        return []
    since = sum(living.joined.values())
    how = (
        f"the newest {terms.window_nodes:,} of known class"
        if terms.calibration_set == "window"
        else "all of known class"
    )
    note = (
        f"calibrated with {len(living.members):,} nodes ({how}): {since:,} of them were evaluated "
        f"since the training, {len(living.joining):,} joined by this run"
    )
    short = len(living.members) < terms.window_nodes and terms.calibration_set == "window"
    return [note + (": fewer are known than the window holds" if short else "")]


def choose_calibration(
    base: Sequence[Member],
    known: Sequence[KnownNode],
    runs: Sequence[RunCount],
    classes: Sequence[str],
    *,
    calibration_set: str,
    window_nodes: int,
    promised: Sequence[int],
    seed: int,
) -> LivingSet:
    """Choose the calibration nodes of the next run.

    Args:
        base: calibration nodes of the training split, with the classes that count now.
        known: evaluated nodes of this model whose class is known.
        runs: the model's runs so far, oldest first.
        classes: the model's classes in the order of its outputs.
        calibration_set: "frozen", "growing" or "window".
        window_nodes: how many nodes a window holds.
        promised: classes with a promise of their own: the window keeps enough nodes of each.
        seed: of the model, for the draw at the window's border.
    """
    index = {name: i for i, name in enumerate(classes)}
    usable = [node for node in known if node.label in index]
    ready = _ready_runs(usable, runs)
    joining = tuple(
        JoinedNode(node.node_key, node.evaluated_in, node.label)
        for node in usable
        if node.joined_by is None and node.evaluated_in in ready
    )
    before = {node.evaluated_in for node in usable if node.joined_by is not None}
    answered = tuple(sorted({node.evaluated_in for node in joining} - before))
    waiting = len(runs) - len(before | set(answered))
    if calibration_set == "frozen":
        return LivingSet(tuple(base), joining, answered, waiting, {})
    counted = [n for n in usable if n.joined_by is not None or n.evaluated_in in ready]
    members = [*base, *(Member(n.node_key, "calibration", index[n.label]) for n in counted)]
    evaluated_in = np.array([0] * len(base) + [n.evaluated_in for n in counted], np.int64)
    if calibration_set == "window":
        draw = hashing.uniforms([member.node_key for member in members], seed, DRAW)
        of_class = np.array([member.class_index for member in members], np.int64)
        chosen = (
            newest_with_classes(
                evaluated_in, draw, window_nodes, of_class, np.array(promised, np.int64)
            )
            if len(promised)
            else newest(evaluated_in, draw, window_nodes)
        )
        members = [member for member, inside in zip(members, chosen, strict=True) if inside]
        evaluated_in = evaluated_in[chosen]
    runs_of, counts = np.unique(evaluated_in[evaluated_in > 0], return_counts=True)
    joined = dict(zip(runs_of.tolist(), counts.tolist(), strict=True))
    return LivingSet(tuple(members), joining, answered, waiting, joined)


def _ready_runs(known: Sequence[KnownNode], runs: Sequence[RunCount]) -> set[int]:
    """Runs whose nodes may join now: see `models.calibration.cohort`."""
    place = {run.seq: i for i, run in enumerate(runs)}
    decided = np.array([run.decided_ns for run in runs], np.int64)
    of_run = np.array([place[node.evaluated_in] for node in known], np.int64)
    noticed = np.array([node.noticed_ns for node in known], np.int64)
    # a class is known to the first run that is decided after it was noticed: this one at the latest
    lags = np.searchsorted(decided, noticed, side="right") - of_run
    ready = settled(len(runs), of_run, lags).tolist()
    return {run.seq for run, is_ready in zip(runs, ready, strict=True) if is_ready}
