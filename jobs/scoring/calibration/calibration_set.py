"""The calibration nodes of a run: the training split, and nodes that became known since.

Nodes that another version evaluated calibrate too: being evaluated is independent of what the
version learnt. Left out are nodes that took part in its training, that are held out from every
version, and those whose classes helped to choose it (`Eligibility`).

Everything follows from the audit store as it stands when the run begins: which evaluated nodes have
a class, when it was noticed, which of them joined by an earlier run, and the levels that runs used.
So a run that is repeated after a crash decides the same, and an auditor can follow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from ringfence.connector.records import JoinedNode, KnownNode, Member, RunCount
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.calibration.known import KnownCount, KnownNodes
from ringfence.connector.store.engine import Store
from ringfence.connector.store.shadow.consulted import consulted_runs
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.ancestors import ancestors_of, learnt_by, runs_consulted
from ringfence.jobs.project.holdout import held_out_keys
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.jobs.scoring.calibration.joining_nodes import UnjoinedRecord, find_joining
from ringfence.jobs.scoring.calibration.settled_runs import (
    MIN_SETTLED_NODES,
    NOTHING_KNOWN,
    SettledRecord,
    UsualLabels,
    find_settled,
    settled_members,
    usual_labels,
)
from ringfence.models import hashing
from ringfence.models.calibration.sets.base import CalibrationSetKind
from ringfence.models.calibration.window import MIN_PER_PROMISED_CLASS

HeldOut = Callable[[Sequence[str]], Set[str]]
DRAW = "window"  # purpose of the hashed uniforms that choose at the window's border
SHARES_KEY = "split_shares"  # of a manifest: class -> role -> share, "" for all other classes


class KnownRecord(UnjoinedRecord, Protocol):
    """The evaluated nodes of known class, as they look to a version; in SQL: `KnownNodes`."""

    def joined(self, runs: Collection[int], label: str | None = None) -> list[KnownNode]:
        """Return those of some runs that joined, of one class where one is named."""

    def all_joined(self) -> list[KnownNode]:
        """Return those of all runs that joined."""

    def members(self) -> Mapping[str, tuple[int, str]]:
        """Return run and class of those that calibrate since the training, by key."""


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """The calibration nodes of a run.

    members: calibration nodes of this run. joining: evaluated nodes that count from this run on.
    answered: runs of this version whose miss rates move the level now; `waiting` earlier ones are
    still open. joined: nodes among `members` that were evaluated, by the run that evaluated them.
    others: how many of those another version evaluated. unsettled: calibration nodes of the
    training that wait for the other classes of their run. settled: which runs are settled, and why
    others are not; None before it was asked. own_settled: runs of this version that have joined or
    moved the level, this time included.
    """

    members: tuple[Member, ...]
    joining: tuple[JoinedNode, ...]
    answered: tuple[int, ...]
    waiting: int
    joined: Mapping[int, int]
    others: int = 0
    unsettled: int = 0
    settled: SettledRecord | None = None
    own_settled: frozenset[int] = frozenset()


def read_calibration_set(
    workspace: Workspace,
    model: SavedModel,
    terms: PromiseTerms,
    base: Sequence[Member],
    consulted: frozenset[int] | None = None,
) -> CalibrationSet:
    """Return the calibration nodes of the next run; only the training split if frozen.

    `consulted` are runs that helped to choose the version: those on record where none are given.
    Those that helped to choose one of its ancestors count as well.
    """
    with workspace.store.at_one_moment() as store:  # `ringfence explain` may read during a run
        if not terms.uses_recent_labels:
            settled = read_settled(store, workspace.settings, model.manifest)
            return CalibrationSet(tuple(base), (), (), 0, {}, settled=settled)
        seed = node_seed(workspace.settings, model.manifest)
        delay_days = workspace.settings.graph.label_delay_days
        return _choose(store, workspace.project, model, terms, base, consulted, seed, delay_days)


def find_early_runs(
    workspace: Workspace, model: SavedModel, calibration: CalibrationSet
) -> frozenset[int]:
    """Return the runs of which only early classes are known, by the rule of settled runs.

    Versions that calibrate by the older rule ask for it here alone.
    """
    settled = calibration.settled
    if settled is None or not settled.runs.usual.any():  # the older rule knows no usual shares
        settled = read_settled(workspace.store, workspace.settings, model.manifest)
    return settled.find_early()


def read_settled(store: Store, settings: Settings, manifest: Mapping[str, Any]) -> SettledRecord:
    """Return the settled runs of a project as a version of today would have them."""
    project = settings.project
    usual = usual_labels(manifest, delay_days=settings.graph.label_delay_days)
    return find_settled(KnownNodes(store, project, "").counts(), run_counts(store, project), usual)


def _choose(
    store: Store,
    project: str,
    model: SavedModel,
    terms: PromiseTerms,
    base: Sequence[Member],
    consulted: frozenset[int] | None,
    draw_seed: int,
    label_delay_days: float | None,
) -> CalibrationSet:
    promised = range(len(model.classes)) if terms.promise_kind.per_class else ()
    before = ancestors_of(model.manifest)
    if consulted is None:
        consulted = consulted_runs(store, project, model.version)
    return choose_calibration(
        base,
        KnownNodes(store, project, model.version),
        run_counts(store, project),
        model.classes,
        kind=terms.calibration_kind,
        window_nodes=terms.window_nodes,
        promised=list(promised),
        eligible=Eligibility(
            model.version,
            model.manifest["seed"],
            model.manifest.get(SHARES_KEY, {}),
            consulted | runs_consulted(store, project, before),
            learnt_by(store, project, before),
            draw_seed,
        ),
        held_out=partial(held_out_keys, model.manifest),
        usual=usual_labels(model.manifest, terms, label_delay_days),
    )


def describe_calibration_set(calibration: CalibrationSet, terms: PromiseTerms) -> list[str]:
    """Return the run's notes on its calibration nodes, and on those that have joined."""
    kind, nodes = terms.calibration_kind, len(calibration.members)
    if not kind.uses_recent_labels:
        return []
    since = sum(calibration.joined.values())
    note = (
        f"calibrated with {nodes:,} nodes ({kind.describe_nodes(terms.window_nodes)}): {since:,} "
        f"of them were evaluated before, {len(calibration.joining):,} joined by this run"
    )
    if calibration.others:
        note += f", {calibration.others:,} were evaluated by another version"
    if calibration.unsettled:
        note += (
            f", {calibration.unsettled:,} of the training wait until more classes of their runs "
            "are known"
        )
    short = kind.is_short(nodes, terms.window_nodes)
    return [note + (": fewer are known than the window holds" if short else "")]


def choose_calibration(
    base: Sequence[Member],
    known: KnownRecord,
    runs: Sequence[RunCount],
    classes: Sequence[str],
    *,
    kind: CalibrationSetKind,
    window_nodes: int,
    promised: Sequence[int],
    eligible: Eligibility,
    held_out: HeldOut = lambda _keys: frozenset(),
    usual: UsualLabels = NOTHING_KNOWN,
) -> CalibrationSet:
    """Choose the calibration nodes of the next run.

    Args:
        base: calibration nodes of the training split, with the classes that count now.
        known: evaluated nodes of every version whose class is known.
        runs: all runs so far, oldest first.
        classes: the model's classes in the order of its outputs.
        kind: which of them calibrate.
        window_nodes: how many nodes a window holds.
        promised: classes with a promise of their own: the window keeps enough nodes of each.
        eligible: which of the known nodes may calibrate; its `draw_seed` draws at the window's
            border.
        held_out: which of some keys belong to the holdout: such nodes move the level as all known
            ones do, and never calibrate.
        usual: what is known beforehand of the classes of evaluated nodes.
    """
    index = {name: i for i, name in enumerate(classes)}
    came = find_joining(known, runs, classes, kind, eligible, usual)
    joining, answered, waiting = came.joined_nodes, came.answered, came.waiting
    settled, own_settled, counts, new = came.settled, came.own_settled, came.counts, came.nodes
    ready, own_runs = settled.seqs, {run.seq for run in runs if run.model == eligible.version}
    if not kind.uses_recent_labels:
        return CalibrationSet(
            tuple(base), joining, answered, waiting, {}, settled=settled, own_settled=own_settled
        )
    size, of_classes = kind.nodes_to_read(window_nodes), [classes[i] for i in promised]
    before = (
        [node for node in known.all_joined() if node.label in index]
        if size is None
        else reach_back(known, counts, new, size, of_classes, held_out)
    )
    aside = held_out([node.node_key for node in (*before, *new)])
    counted = [node for node in (*before, *new) if node.node_key not in aside]
    seqs = {key: seq for key, (seq, label) in known.members().items() if label in index}
    fair = base
    if not promised:  # a class that calibrates itself alone needs no share of the others
        fair = settled_members(base, seqs, ready, len(counted))
    members = [*fair, *(Member(n.node_key, "calibration", index[n.label]) for n in counted)]
    # where nodes of a run that is not ready count, they count as old ones
    seqs = {key: seq for key, seq in seqs.items() if seq in ready}
    evaluated_in = np.array(
        [seqs.get(member.node_key, 0) for member in fair] + [node.evaluated_in for node in counted],
        np.int64,
    )
    chosen = kind.choose(
        evaluated_in,
        partial(
            hashing.uniforms, [member.node_key for member in members], eligible.draw_seed, DRAW
        ),
        window_nodes,
        np.array([member.class_index for member in members], np.int64),
        np.array(promised, np.int64),
    )
    members = [member for member, inside in zip(members, chosen, strict=True) if inside]
    evaluated_in = evaluated_in[chosen]
    runs_of, sizes = np.unique(evaluated_in[evaluated_in > 0], return_counts=True)
    joined = dict(zip(runs_of.tolist(), sizes.tolist(), strict=True))
    others = sum(nodes for seq, nodes in joined.items() if seq not in own_runs)
    unsettled = len(base) - len(fair)
    return CalibrationSet(
        tuple(members), joining, answered, waiting, joined, others, unsettled, settled, own_settled
    )


def reach_back(
    known: KnownRecord,
    counts: Sequence[KnownCount],
    new: Sequence[KnownNode],
    window_nodes: int,
    promised: Sequence[str],
    held_out: HeldOut,
) -> list[KnownNode]:
    """Return the joined nodes that a window can hold, by run and key; older ones can't be in it.

    Args:
        known: as in `choose_calibration`.
        counts: how many there are, of the model's classes alone.
        new: nodes that join now.
        window_nodes: as in `choose_calibration`.
        promised: names of the classes of which the window keeps enough.
        held_out: as in `choose_calibration`.
    """
    newest = _newest_joined(known, counts, new, max(window_nodes, MIN_SETTLED_NODES), held_out)
    for label in promised:
        alike = [count for count in counts if count.label == label]
        joining = [node for node in new if node.label == label]
        newest += _newest_joined(known, alike, joining, MIN_PER_PROMISED_CLASS, held_out, label)
    once = {node.node_key: node for node in newest}
    return sorted(once.values(), key=lambda node: (node.evaluated_in, node.node_key))


def _newest_joined(
    known: KnownRecord,
    counts: Sequence[KnownCount],
    new: Sequence[KnownNode],
    size: int,
    held_out: HeldOut,
    label: str | None = None,
) -> list[KnownNode]:
    """Read runs from the newest on, until they and `new` hold `size` nodes that may calibrate."""
    classes = {count.label for count in counts}
    sizes: Counter[int] = Counter()
    for count in counts:
        sizes[count.evaluated_in] += count.nodes if count.is_joined else 0
    runs, newest, short = sorted(+sizes), [], size
    while runs and short > 0:
        part = [runs.pop()]
        while runs and sum(sizes[run] for run in part) < short:
            part.append(runs.pop())
        newest += [node for node in known.joined(part, label) if node.label in classes]
        reached = newest + [node for node in new if node.evaluated_in >= part[-1]]
        short = size - len(reached) + len(held_out([node.node_key for node in reached]))
    return newest
