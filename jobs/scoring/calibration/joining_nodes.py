"""Which evaluated nodes join the calibration at the next run, and which runs it answers.

A run asks for it before it decides; `ringfence verify` asks again, about the record as it was then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from ringfence.connector.records import JoinedNode, KnownNode, RunCount
from ringfence.connector.store.calibration.known import KnownCount
from ringfence.jobs.scoring.calibration.eligibility import Eligibility
from ringfence.jobs.scoring.calibration.settled_runs import (
    SettledRecord,
    UsualLabels,
    find_settled,
)
from ringfence.models.calibration.sets.base import CalibrationSetKind


class UnjoinedRecord(Protocol):
    """The evaluated nodes of known class, as far as they decide who joins next."""

    def counts(self) -> Sequence[KnownCount]:
        """Return how many there are of each kind."""

    def unjoined(self, runs: Collection[int]) -> list[KnownNode]:
        """Return those of some runs that neither joined nor took part in the training."""


@dataclass(frozen=True, slots=True)
class Joining:
    """What the classes that became known change at the next run.

    nodes: those that join. answered, waiting, settled, own_settled: as in `CalibrationSet`. counts:
    the nodes of the model's classes that are known, as they were read.
    """

    nodes: tuple[KnownNode, ...]
    answered: tuple[int, ...]
    waiting: int
    settled: SettledRecord
    own_settled: frozenset[int]
    counts: tuple[KnownCount, ...]

    @property
    def joined_nodes(self) -> tuple[JoinedNode, ...]:
        """The nodes that join, as they are recorded."""
        return tuple(JoinedNode(n.node_key, n.evaluated_in, n.label) for n in self.nodes)


def find_joining(
    known: UnjoinedRecord,
    runs: Sequence[RunCount],
    classes: Sequence[str],
    kind: CalibrationSetKind,
    eligible: Eligibility,
    usual: UsualLabels,
) -> Joining:
    """Find which nodes join the next run, and which runs it answers; see `choose_calibration`."""
    every_count = known.counts()
    settled = find_settled(every_count, runs, usual)
    counts = [count for count in every_count if count.label in classes]
    own_runs = {run.seq for run in runs if run.model == eligible.version}
    open_ = {count.evaluated_in for count in counts if not count.is_joined} & settled.seqs
    if not kind.uses_recent_labels:  # joining nodes only move the level
        open_ &= own_runs
    sampled = {count.evaluated_in for count in counts if not count.is_joined and count.sampled}
    sampled &= settled.of_sample if kind.uses_recent_labels else frozenset()
    divided = {count.evaluated_in for count in counts if count.role is not None}
    free = [*known.unjoined(open_), *(n for n in known.unjoined(sampled) if n.sampled)]
    new = eligible.among([node for node in free if node.label in classes], divided)
    done = {count.evaluated_in for count in counts if count.is_joined} & own_runs
    answered = tuple(sorted((open_ & own_runs) - done))
    waiting = len(own_runs - done - set(answered))
    own_settled = frozenset(done) | frozenset(answered)
    return Joining(tuple(new), answered, waiting, settled, own_settled, tuple(counts))
