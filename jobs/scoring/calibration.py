"""Who calibrates a run, and at which levels: the training split, and nodes that became known since.

Nodes that another version evaluated calibrate too: to be evaluated has nothing to do with what the
version learnt. Left out are nodes that took part in its training, that are held out from every
version, and those whose classes helped to choose it (`Eligibility`).

Everything follows from the audit store as it stands when the run begins: which evaluated nodes have
a class, when it was noticed, which of them joined by an earlier run, and the levels that runs used.
So a run that is repeated after a crash decides the same, and an auditor can follow it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import JoinedNode, KnownNode, Member, RunCount
from ringfence.connector.store.calibration.joined import known_nodes, run_counts
from ringfence.connector.store.shadow.consulted import consulted_runs
from ringfence.jobs.project.ancestors import ancestors_of, learnt_by, runs_consulted
from ringfence.jobs.project.holdout import held_out_keys
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.models import hashing
from ringfence.models.calibration.cohort import settled
from ringfence.models.calibration.window import newest, newest_with_classes

DRAW = "window"  # purpose of the hashed uniforms that choose at the window's border
MIN_SETTLED_NODES = 100
"""With fewer calibration nodes of settled runs, all nodes of the training calibrate."""
SHARES_KEY = "split_shares"  # of a manifest: class -> role -> share, "" for all other classes
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LivingSet:
    """Who calibrates a run.

    members: calibration nodes of this run.
    joining: evaluated nodes that count from this run on.
    answered: runs of this version whose miss rates the level takes in now; `waiting` earlier ones
        are still open.
    joined: nodes among `members` that were evaluated, by the run that evaluated them.
    others: how many of those another version evaluated.
    unsettled: calibration nodes of the training that wait for the other classes of their run.
    """

    members: tuple[Member, ...]
    joining: tuple[JoinedNode, ...]
    answered: tuple[int, ...]
    waiting: int
    joined: Mapping[int, int]
    others: int = 0
    unsettled: int = 0


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Which evaluated nodes may calibrate a version, beside not having taken part in its training.

    version, seed: of the version; its own runs answer for its level.
    shares: class -> shares of the roles at the training, "" for every class without its own; empty
        where an older version did not record them.
    consulted: runs of which some class helped to choose the version: none of their nodes
        calibrates it, since those that became known later alone would be a choice of their own.
    learnt: keys that its ancestors (`[model] warm_start`) learnt from.
    """

    version: str = ""
    seed: int = 0
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    consulted: frozenset[int] = frozenset()
    learnt: frozenset[str] = frozenset()

    def among(self, nodes: Sequence[KnownNode], divided: Container[int]) -> list[KnownNode]:
        """Return those of some nodes that may join; `divided` are runs that the training divided.

        Of a run that had known nodes at the training, these were divided by their keys; its other
        nodes are divided in the same way once they are known, and the part that would have
        calibrated does. All of them would be too many of the classes that become known late.
        """
        free = [
            n
            for n in nodes
            if n.role is None
            and n.evaluated_in not in self.consulted
            and n.node_key not in self.learnt
        ]
        names: dict[str, list[KnownNode]] = {}
        for node in free:
            if node.evaluated_in in divided:
                names.setdefault(node.label if node.label in self.shares else "", []).append(node)
        drawn: set[str] = set()
        for name, own in names.items() if self.shares else ():
            parts = hashing.split([n.node_key for n in own], self.seed, self.shares[name])
            calibrates = parts["calibration"].tolist()
            drawn |= {n.node_key for n, inside in zip(own, calibrates, strict=True) if inside}
        return [n for n in free if n.evaluated_in not in divided or n.node_key in drawn]


def living_set(
    workspace: Workspace,
    model: SavedModel,
    terms: PromiseTerms,
    base: Sequence[Member],
    consulted: frozenset[int] | None = None,
) -> LivingSet:
    """Return who calibrates the next run; the training split alone where nothing else is asked.

    `consulted` are runs that helped to choose the version: those on record where none are given.
    Those that helped to choose one of its ancestors count as well.
    """
    if terms.calibration_set == "frozen" and not terms.adapt:
        return LivingSet(tuple(base), (), (), 0, {})
    promised = range(len(model.classes)) if terms.promise == "class" else ()
    store, project = workspace.store, workspace.project
    known = known_nodes(store, project, model.version)
    before = ancestors_of(model.manifest)
    if consulted is None:
        consulted = consulted_runs(store, project, model.version)
    return choose_calibration(
        base,
        known,
        run_counts(store, project),
        model.classes,
        calibration_set=terms.calibration_set,
        window_nodes=terms.window_nodes,
        promised=list(promised),
        eligible=Eligibility(
            model.version,
            model.manifest["seed"],
            model.manifest.get(SHARES_KEY, {}),
            consulted | runs_consulted(store, project, before),
            learnt_by(store, project, before),
        ),
        held_out=held_out_keys(model.manifest, [node.node_key for node in known]),
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
        f"before, {len(living.joining):,} joined by this run"
    )
    if living.others:
        note += f", {living.others:,} were evaluated by another version"
    if living.unsettled:
        note += (
            f", {living.unsettled:,} of the training wait until more classes of their runs are "
            "known"
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
    eligible: Eligibility,
    held_out: Set[str] = frozenset(),
) -> LivingSet:
    """Choose the calibration nodes of the next run.

    Args:
        base: calibration nodes of the training split, with the classes that count now.
        known: evaluated nodes of every version whose class is known.
        runs: all runs so far, oldest first.
        classes: the model's classes in the order of its outputs.
        calibration_set: "frozen", "growing" or "window".
        window_nodes: how many nodes a window holds.
        promised: classes with a promise of their own: the window keeps enough nodes of each.
        eligible: which of the known nodes may calibrate; its seed draws at the window's border.
        held_out: keys of nodes that answer for the level as all known ones do, and never calibrate.
    """
    index = {name: i for i, name in enumerate(classes)}
    usable = [node for node in known if node.label in index]
    ready = ready_runs(usable, runs)
    own = {run.seq for run in runs if run.model == eligible.version}
    before = [node for node in usable if node.joined_by is not None]
    open_ = [node for node in usable if node.joined_by is None and node.evaluated_in in ready]
    if calibration_set == "frozen":  # who joins answers for the level, and does nothing else
        open_ = [node for node in open_ if node.evaluated_in in own]
    divided = {node.evaluated_in for node in usable if node.role is not None}
    new = eligible.among(open_, divided)
    joining = tuple(JoinedNode(node.node_key, node.evaluated_in, node.label) for node in new)
    done = {node.evaluated_in for node in before} & own
    answered = tuple(sorted(({node.evaluated_in for node in open_} & own) - done))
    waiting = len(own - done - set(answered))
    if calibration_set == "frozen":
        return LivingSet(tuple(base), joining, answered, waiting, {})
    counted = [node for node in (*before, *new) if node.node_key not in held_out]
    seqs = {n.node_key: n.evaluated_in for n in usable if n.role}
    fair = base
    if not promised:  # a class that calibrates itself alone needs no share of the others
        fair = settled_members(base, seqs, ready, len(counted))
    members = [*fair, *(Member(n.node_key, "calibration", index[n.label]) for n in counted)]
    # where nodes of a run that is not ready count, they count as old ones
    seqs = {key: seq for key, seq in seqs.items() if seq in ready}
    evaluated_in = np.array(
        [seqs.get(one.node_key, 0) for one in fair] + [node.evaluated_in for node in counted],
        np.int64,
    )
    if calibration_set == "window":
        draw = hashing.uniforms([member.node_key for member in members], eligible.seed, DRAW)
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
    others = sum(count for seq, count in joined.items() if seq not in own)
    unsettled = len(base) - len(fair)
    return LivingSet(tuple(members), joining, answered, waiting, joined, others, unsettled)


def settled_members(
    base: Sequence[Member], seqs: Mapping[str, int], ready: Container[int], others: int = 0
) -> list[Member]:
    """Return the calibration nodes of a training without those that would favour early classes.

    When a version is trained, only early classes are known of the newest runs. Their nodes among
    the calibration nodes are too many of these classes, until the others of their run are known
    and the part of them that calibrates has joined. Where too few nodes would be left, all count.

    Args:
        base: calibration nodes of the training.
        seqs: the run that evaluated each of them, by key; nodes without one were never evaluated.
        ready: runs whose classes are known as far as they usually are.
        others: further nodes that calibrate.
    """
    fair = [one for one in base if (seq := seqs.get(one.node_key)) is None or seq in ready]
    return fair if len(fair) + others >= MIN_SETTLED_NODES else list(base)


def settled_at_training(known: Sequence[KnownNode], runs: Sequence[RunCount]) -> set[int]:
    """Return the runs whose classes are known as far as they usually are, between two runs.

    What the next run will know is not all there yet, so runs count as old as the last one saw them.
    """
    earlier = runs[:-1]
    seqs = {run.seq for run in earlier}
    return ready_runs([node for node in known if node.evaluated_in in seqs], earlier)


def ready_runs(known: Sequence[KnownNode], runs: Sequence[RunCount]) -> set[int]:
    """Runs whose nodes may join now: see `models.calibration.cohort`."""
    place = {run.seq: i for i, run in enumerate(runs)}
    decided = np.array([run.decided_ns for run in runs], np.int64)
    of_run = np.array([place[node.evaluated_in] for node in known], np.int64)
    noticed = np.array([node.noticed_ns for node in known], np.int64)
    # a class is known to the first run that is decided after it was noticed: this one at the latest
    lags = np.searchsorted(decided, noticed, side="right") - of_run
    ready = settled(len(runs), of_run, lags).tolist()
    return {run.seq for run, is_ready in zip(runs, ready, strict=True) if is_ready}
