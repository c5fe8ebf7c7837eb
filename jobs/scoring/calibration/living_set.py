"""Who calibrates a run, and at which levels: the training split, and nodes that became known since.

Nodes that another version evaluated calibrate too: to be evaluated has nothing to do with what the
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
from typing import Protocol

import numpy as np

from ringfence.connector.records import JoinedNode, KnownNode, Member, RunCount
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.calibration.known import KnownCount, KnownNodes
from ringfence.connector.store.engine import Store
from ringfence.connector.store.shadow.consulted import consulted_runs
from ringfence.jobs.project.ancestors import ancestors_of, learnt_by, runs_consulted
from ringfence.jobs.project.holdout import held_out_keys
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.jobs.scoring.calibration.settled_runs import (
    MIN_SETTLED_NODES,
    ready_runs,
    settled_members,
)
from ringfence.models import hashing
from ringfence.models.calibration.window import (
    MIN_PER_PROMISED_CLASS,
    newest,
    newest_with_classes,
)

HeldOut = Callable[[Sequence[str]], Set[str]]
DRAW = "window"  # purpose of the hashed uniforms that choose at the window's border
SHARES_KEY = "split_shares"  # of a manifest: class -> role -> share, "" for all other classes


class KnownRecord(Protocol):
    """The evaluated nodes of known class, as they look to a version; in SQL: `KnownNodes`."""

    def counts(self) -> Sequence[KnownCount]:
        """Return how many there are of each kind."""

    def unjoined(self, runs: Collection[int]) -> list[KnownNode]:
        """Return those of some runs that neither joined nor took part in the training."""

    def joined(self, runs: Collection[int], label: str | None = None) -> list[KnownNode]:
        """Return those of some runs that joined, of one class where one is named."""

    def all_joined(self) -> list[KnownNode]:
        """Return those of all runs that joined."""

    def members(self) -> Mapping[str, tuple[int, str]]:
        """Return run and class of those that calibrate since the training, by key."""


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
    with workspace.store.at_one_moment() as store:  # `ringfence explain` asks beside a run
        return _choose(store, workspace.project, model, terms, base, consulted)


def _choose(
    store: Store,
    project: str,
    model: SavedModel,
    terms: PromiseTerms,
    base: Sequence[Member],
    consulted: frozenset[int] | None,
) -> LivingSet:
    promised = range(len(model.classes)) if terms.promise == "class" else ()
    before = ancestors_of(model.manifest)
    if consulted is None:
        consulted = consulted_runs(store, project, model.version)
    return choose_calibration(
        base,
        KnownNodes(store, project, model.version),
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
        held_out=partial(held_out_keys, model.manifest),
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
    known: KnownRecord,
    runs: Sequence[RunCount],
    classes: Sequence[str],
    *,
    calibration_set: str,
    window_nodes: int,
    promised: Sequence[int],
    eligible: Eligibility,
    held_out: HeldOut = lambda _keys: frozenset(),
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
        held_out: which of some keys belong to nodes that answer for the level as all known ones
            do, and never calibrate.
    """
    index = {name: i for i, name in enumerate(classes)}
    counts = [count for count in known.counts() if count.label in index]
    ready = ready_runs(counts, runs)
    own = {run.seq for run in runs if run.model == eligible.version}
    open_ = {one.evaluated_in for one in counts if not one.is_joined} & ready
    if calibration_set == "frozen":  # who joins answers for the level, and does nothing else
        open_ &= own
    divided = {count.evaluated_in for count in counts if count.role is not None}
    new = eligible.among([n for n in known.unjoined(open_) if n.label in index], divided)
    joining = tuple(JoinedNode(node.node_key, node.evaluated_in, node.label) for node in new)
    done = {count.evaluated_in for count in counts if count.is_joined} & own
    answered = tuple(sorted((open_ & own) - done))
    waiting = len(own - done - set(answered))
    if calibration_set == "frozen":
        return LivingSet(tuple(base), joining, answered, waiting, {})
    before = (
        [node for node in known.all_joined() if node.label in index]
        if calibration_set == "growing"
        else reach_back(known, counts, new, window_nodes, [classes[i] for i in promised], held_out)
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
    runs_of, sizes = np.unique(evaluated_in[evaluated_in > 0], return_counts=True)
    joined = dict(zip(runs_of.tolist(), sizes.tolist(), strict=True))
    others = sum(nodes for seq, nodes in joined.items() if seq not in own)
    unsettled = len(base) - len(fair)
    return LivingSet(tuple(members), joining, answered, waiting, joined, others, unsettled)


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
    found = _newest_joined(known, counts, new, max(window_nodes, MIN_SETTLED_NODES), held_out)
    for label in promised:
        alike = [count for count in counts if count.label == label]
        joining = [node for node in new if node.label == label]
        found += _newest_joined(known, alike, joining, MIN_PER_PROMISED_CLASS, held_out, label)
    once = {node.node_key: node for node in found}
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
    runs, found, short = sorted(+sizes), [], size
    while runs and short > 0:
        part = [runs.pop()]
        while runs and sum(sizes[run] for run in part) < short:
            part.append(runs.pop())
        found += [node for node in known.joined(part, label) if node.label in classes]
        reached = found + [node for node in new if node.evaluated_in >= part[-1]]
        short = size - len(reached) + len(held_out([node.node_key for node in reached]))
    return found
