"""Runs whose classes are known as far as they usually are, and calibration nodes of the others.

`models.calibration.cohort` has the rule; here are the runs on record as arrays, and the notes.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.records import Member, RunCount
from ringfence.connector.store.calibration.known import KnownCount
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.models.calibration.cohort import (
    FORMER_WAIT_RUNS,
    MAX_MISSING_SHARE,
    MAX_WAIT_DAYS,
    NEARLY_ALL,
    NEVER,
    NEWEST_RUNS,
    SHORT_P,
    Labels,
    SettledRuns,
    settle_runs,
    short_classes,
)
from ringfence.models.calibration.selected import Selection, held_runs
from ringfence.models.calibration.settled_by_age import settle_by_age

DAY_NS = 86_400 * NANOSECONDS

NEVER_SEEN_P = 0.25
"""Chance of leaving out so much so far, below which a class is taken to come later than others."""

FAR_FROM_USUAL = 0.25
"""Total variation from the usual shares up to which only a class that is short tells a choice."""

FAIR_DRAWS, ROUNDING = 2_000, 1e-9

MIN_SETTLED_NODES = 100
"""With fewer calibration nodes of settled runs, all nodes of the training calibrate."""


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
    fair = [member for member in base if (seq := seqs.get(member.node_key)) is None or seq in ready]
    return fair if len(fair) + others >= MIN_SETTLED_NODES else list(base)


def settled_at_training(known: Sequence[KnownCount], runs: Sequence[RunCount]) -> set[int]:
    """Return the runs whose classes are known as far as they usually are, between two runs.

    What the next run will know is not all there yet, so runs count as old as the last one saw them.
    """
    earlier = runs[:-1]
    seqs = {run.seq for run in earlier}
    return ready_runs([count for count in known if count.evaluated_in in seqs], earlier)


@dataclass(frozen=True, slots=True)
class UsualLabels:
    """What is known beforehand of the classes of evaluated nodes.

    classes: labelled nodes of each class at the training; empty where a version did not record it.
    delay_days: `[graph] label_delay_days`.
    by_age: whether runs settle by the rule of versions trained before, of these classes alone.
    by_runs: whether a class that was never seen is waited for 90 runs, as by older versions.
    """

    classes: Mapping[str, int]
    delay_days: float | None = None
    by_age: bool = False
    by_runs: bool = False


NOTHING_KNOWN = UsualLabels({})


def usual_labels(
    manifest: Mapping[str, Any],
    terms: PromiseTerms | None = None,
    delay_days: float | None = None,
) -> UsualLabels:
    """Return what a version knows of its classes: their labelled nodes at its training.

    Without `terms` runs settle as those of a version that is trained today.
    """
    counts = manifest.get("data", {}).get("classes", {})
    return UsualLabels(
        {name: counts.get(name, 0) for name in manifest.get("classes", counts)},
        delay_days,
        by_age=terms is not None and terms.settles_by_age,
        by_runs=terms is not None and terms.waits_by_runs,
    )


@dataclass(frozen=True, slots=True)
class SettledRecord:
    """The settled runs by their numbers, and the rule's reasons with the names of the classes.

    waiting: runs that are not settled. of_waiting: their known nodes by class [classes].
    partly: runs that are not known nearly whole. never_seen: whether classes that were a large part
    of the training have clearly not come yet, in the whole life of the project. held: runs whose
    known classes are a choice of listed nodes; they are not settled. of_sample: those of them whose
    audit sample is known nearly whole.
    """

    seqs: frozenset[int]
    names: tuple[str, ...]
    runs: SettledRuns = field(compare=False)  # arrays, which have no equality
    overdue: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()
    of_waiting: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, int), compare=False)
    partly: frozenset[int] = frozenset()
    never_seen: bool = False
    held: frozenset[int] = frozenset()
    of_sample: frozenset[int] = frozenset()

    def find_early(self) -> frozenset[int]:
        """Return the runs that wait, if their known nodes are clearly a choice of classes.

        Nobody judges coverage by them, and the exchangeability monitor waits for them too. Runs
        that waited long enough answer for the level; while most classes were never seen they are
        no basis of a verdict.
        """
        if self.never_seen:
            return self.partly | self.held
        is_choice = is_choice_of_classes(self.of_waiting, self.runs)
        return self.waiting if is_choice else self.held

    def named(self, classes: Sequence[int]) -> str:
        """Return some classes with their shares: "mule (6 % of the nodes trained on)"."""
        trained = self.runs.trained
        return ", ".join(
            f"{self.names[c]} ({100 * trained[c]:.2g} % of the nodes trained on)" for c in classes
        )


def ready_runs(known: Sequence[KnownCount], runs: Sequence[RunCount]) -> set[int]:
    """Runs whose nodes may join now, where nothing is known of the classes beforehand."""
    return set(find_settled(known, runs).seqs)


def find_settled(
    known: Sequence[KnownCount],
    runs: Sequence[RunCount],
    usual: UsualLabels = NOTHING_KNOWN,
    *,
    between: bool = False,
) -> SettledRecord:
    """Return the runs that are settled when the next one is made: see `models.calibration.cohort`.

    Args:
        known: evaluated nodes of known class, of every version.
        runs: all runs so far, oldest first.
        usual: what is known of their classes beforehand.
        between: whether it is asked between two runs, as by an audit.
    """
    place = {run.seq: i for i, run in enumerate(runs)}
    any_counted = sum(usual.classes.values()) > 0
    names = tuple(usual.classes) or tuple(sorted({count.label for count in known}))
    index = {name: i for i, name in enumerate(names)}
    decided = np.array([run.decided_ns for run in runs], np.int64)
    nodes = np.array([count.nodes for count in known], np.int64)
    of_run = np.array([place[count.evaluated_in] for count in known], np.int64)
    noticed = np.array([count.noticed_ns for count in known], np.int64)
    # a class is known to the first run that is decided after it was noticed, at the latest to this
    # one; one that was there before its node was evaluated, to the next
    lags = np.searchsorted(decided, noticed, side="right") - of_run
    lags = lags if usual.by_age else np.maximum(lags, 1)
    class_of = np.array([index.get(count.label, -1) for count in known], np.int64)
    labels = Labels(np.repeat(of_run, nodes), np.repeat(class_of, nodes), np.repeat(lags, nodes))
    held, of_sample = np.zeros(len(runs), np.bool_), frozenset[int]()
    if usual.by_age:
        settled = _settled_by_age(len(runs), labels, len(names))
    else:
        settled = settle_runs(
            np.array([run.evaluated for run in runs], np.int64),
            labels,
            np.array(list(usual.classes.values()), np.float64) if any_counted else None,
            runs_within(decided, usual.delay_days),
            _longest_wait(decided, usual),
            between=between,
        )
        held, of_sample = _find_held(known, runs, settled, place)
        settled = replace(settled, ready=settled.ready & ~held, overdue=settled.overdue & ~held)
    open_ = ~settled.ready[labels.of_run] & (labels.class_of >= 0)
    of_waiting = np.bincount(labels.class_of[open_], minlength=len(settled.usual))
    return SettledRecord(
        frozenset(run.seq for run, ready in zip(runs, settled.ready, strict=True) if ready),
        names,
        settled,
        frozenset(run.seq for run, late in zip(runs, settled.overdue, strict=True) if late),
        frozenset(run.seq for run, ready in zip(runs, settled.ready, strict=True) if not ready),
        of_waiting,
        _partly_known(runs, labels),
        _are_classes_to_come(usual, labels),
        frozenset(run.seq for run, is_held in zip(runs, held, strict=True) if is_held),
        of_sample,
    )


def _find_held(
    known: Sequence[KnownCount],
    runs: Sequence[RunCount],
    settled: SettledRuns,
    place: Mapping[int, int],
) -> tuple[NDArray[np.bool_], frozenset[int]]:
    """Return the held runs, and those of them whose sample is old enough and known nearly whole."""
    in_all, selected, sampled = np.zeros((3, len(runs)), np.int64)
    for count in known:
        row = place[count.evaluated_in]
        if count.sampled:
            sampled[row] += count.nodes
        else:
            in_all[row] += count.nodes
            selected[row] += count.nodes * count.selected
    drawn = np.array([run.sampled for run in runs], np.int64)
    others = np.array([run.evaluated for run in runs], np.int64) - drawn
    listed = np.array([run.listed_apart for run in runs], np.int64)
    held = held_runs(Selection(others, listed, in_all, selected))
    in_time = len(runs) - np.arange(len(runs)) >= (settled.delay or len(runs) + 1)
    whole = held & in_time & (drawn > 0) & (sampled >= NEARLY_ALL * drawn)
    return held, frozenset(run.seq for run, is_whole in zip(runs, whole, strict=True) if is_whole)


def _partly_known(runs: Sequence[RunCount], labels: Labels) -> frozenset[int]:
    known = np.bincount(labels.of_run, minlength=len(runs))
    return frozenset(
        run.seq
        for run, nodes in zip(runs, known, strict=True)
        if nodes < NEARLY_ALL * run.evaluated
    )


def _are_classes_to_come(usual: UsualLabels, labels: Labels) -> bool:
    """Whether hardly any fair draw of the training's classes leaves out so much as was never seen.

    A small class may have vanished; where a large part of the nodes was never seen at all, what is
    known so far are early classes.
    """
    trained = np.array(list(usual.classes.values()), np.float64)
    seen = np.isin(np.arange(len(trained)), labels.class_of)
    unseen = float(trained[~seen].sum()) / max(float(trained.sum()), 1.0)
    known = int((labels.class_of >= 0).sum())
    return known > 0 and unseen > FAR_FROM_USUAL and (1.0 - unseen) ** known < SHORT_P


def is_choice_of_classes(of_class: NDArray[np.int64], settled: SettledRuns) -> bool:
    """Return whether known nodes are clearly no fair draw of the classes, by their number in each.

    They are if some class is short; or if hardly any fair draw of as many nodes is so far from the
    usual shares; and if few fair draws leave out as much as the classes that were never seen at all
    in the life of the project, which needs less evidence.
    """
    nodes, usual = int(of_class.sum()), np.clip(settled.usual, 0.0, 1.0)
    if not nodes or not usual.sum():
        return False
    if short_classes(of_class, settled.usual, settled.left_out):
        return True
    usual = usual / usual.sum()
    draws = np.random.default_rng(0).multinomial(nodes, usual, FAIR_DRAWS)
    large = usual > MAX_MISSING_SHARE
    unseen = float(usual[large & (settled.delays == NEVER)].sum())
    left_out = (draws == 0)[:, large] @ usual[large]
    if unseen and np.mean(left_out >= unseen - ROUNDING) < NEVER_SEEN_P:
        return True
    distance = _distance(of_class, usual)
    as_far = np.mean(_distance(draws, usual) >= distance - ROUNDING)
    return bool(distance > FAR_FROM_USUAL and as_far < SHORT_P)


def _distance(counts: NDArray[np.int64], usual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Total variation between shares [..., classes] and the usual ones [...]."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.abs(shares - usual).sum(axis=-1) / 2.0)


def _settled_by_age(runs: int, labels: Labels, classes: int) -> SettledRuns:
    """The rule of versions trained before; it asks neither for shares nor for single classes."""
    seen = labels.class_of >= 0
    counted = Labels(labels.of_run[seen], labels.class_of[seen], labels.lags[seen])
    ready, delay = settle_by_age(runs, counted)
    return SettledRuns(
        ready,
        np.zeros(runs, np.bool_),
        delay or None,
        delay,
        np.zeros(classes),
        np.full(classes, NEVER),
    )


def _longest_wait(decided_ns: NDArray[np.int64], usual: UsualLabels) -> int:
    """How many runs one waits for a class that was never seen; NEVER while no run can tell."""
    if usual.by_runs:
        return FORMER_WAIT_RUNS
    return runs_within(decided_ns, float(MAX_WAIT_DAYS)) or NEVER


def runs_within(decided_ns: NDArray[np.int64], days: float | None) -> int | None:
    """Return how many runs some days take, by the time between the newest runs.

    >>> runs_within(np.arange(5) * DAY_NS, 14.0)
    14
    >>> runs_within(np.array([0]), 14.0) is None
    True
    """
    newest = decided_ns[-NEWEST_RUNS:]
    if days is None or len(newest) < 2 or newest[-1] <= newest[0]:
        return None
    between = float(newest[-1] - newest[0]) / (len(newest) - 1)
    return max(1, math.ceil(days * DAY_NS / between))
