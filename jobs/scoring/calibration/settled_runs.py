"""Runs whose classes are known as far as they usually are, and calibration nodes of the others."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from ringfence.connector.records import Member, RunCount
from ringfence.connector.store.calibration.known import KnownCount
from ringfence.models.calibration.cohort import settled

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
    fair = [one for one in base if (seq := seqs.get(one.node_key)) is None or seq in ready]
    return fair if len(fair) + others >= MIN_SETTLED_NODES else list(base)


def settled_at_training(known: Sequence[KnownCount], runs: Sequence[RunCount]) -> set[int]:
    """Return the runs whose classes are known as far as they usually are, between two runs.

    What the next run will know is not all there yet, so runs count as old as the last one saw them.
    """
    earlier = runs[:-1]
    seqs = {run.seq for run in earlier}
    return ready_runs([count for count in known if count.evaluated_in in seqs], earlier)


def ready_runs(known: Sequence[KnownCount], runs: Sequence[RunCount]) -> set[int]:
    """Runs whose nodes may join now: see `models.calibration.cohort`."""
    place = {run.seq: i for i, run in enumerate(runs)}
    decided = np.array([run.decided_ns for run in runs], np.int64)
    of_run = np.array([place[count.evaluated_in] for count in known], np.int64)
    noticed = np.array([count.noticed_ns for count in known], np.int64)
    # a class is known to the first run that is decided after it was noticed: this one at the latest
    lags = np.searchsorted(decided, noticed, side="right") - of_run
    nodes = np.array([count.nodes for count in known], np.int64)
    ready = settled(len(runs), np.repeat(of_run, nodes), np.repeat(lags, nodes)).tolist()
    return {run.seq for run, is_ready in zip(runs, ready, strict=True) if is_ready}
