"""Coverage of a period: nodes of the runs decided in it, with every class known by now.

Counted from the predictions themselves, at each run's first alpha. Runs of different models or
alphas are not added up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, and_, case, func, select

from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.blocks import split
from ringfence.connector.store.tables import grouping, prediction, run
from ringfence.connector.store.thresholds.strata import group_name_column, same_node
from ringfence.connector.store.worklist.sampled_nodes import IS_SAMPLED

RUNS_PER_STATEMENT = 500
COUNTS = ("evaluated", "known", "covered", "unseen", "classes_in_sets")


@dataclass(frozen=True, slots=True)
class PeriodRun:
    """A run that was decided in a period."""

    seq: int
    decided_ns: int
    model: str
    alpha: float
    n_evaluated: int


@dataclass(frozen=True, slots=True)
class PeriodCoverage:
    """Counts of a period's nodes of one model and alpha, in all or of a run, class or group.

    `slice` is total, run, class, group or sample (the audit sample); `name` is the run's number,
    the class, or property=value. `classes_in_sets` is the sum of the sizes of the sets.
    """

    slice: str
    name: str
    model: str
    alpha: float
    evaluated: int
    known: int
    covered: int
    unseen: int
    classes_in_sets: int

    def as_json(self) -> JsonObject:
        """Return the counts by name."""
        return asdict(self)


def runs_decided_in(
    connection: Connection, project: str, from_ns: int | None, until_ns: int | None
) -> list[PeriodRun]:
    """Return the runs that were decided from one moment on and before another, oldest first."""
    columns = [run.c[name] for name in PeriodRun.__dataclass_fields__]
    query = select(*columns).where(run.c.project == project, run.c.decided_ns.is_not(None))
    if from_ns is not None:
        query = query.where(run.c.decided_ns >= from_ns)
    if until_ns is not None:
        query = query.where(run.c.decided_ns < until_ns)
    return [PeriodRun(*row) for row in connection.execute(query.order_by(run.c.seq))]


def count_period(
    connection: Connection, project: str, runs: Sequence[PeriodRun]
) -> list[PeriodCoverage]:
    """Return the counts of some runs: in all, per run, class and group, and of the audit sample."""
    terms = {decided.seq: (decided.model, decided.alpha) for decided in runs}
    sums: dict[tuple[str, str, str, float], list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for part in split(runs, RUNS_PER_STATEMENT):
        seqs = [decided.seq for decided in part]
        for seq, label, *counts in connection.execute(_by_class(project, seqs)):
            slices = [("total", ""), ("run", str(seq))]
            slices += [] if label is None else [("class", label)]
            for slice_, name in slices:
                _add(sums[slice_, name, *terms[seq]], counts)
        for seq, group, *counts in connection.execute(_by_group(project, seqs)):
            _add(sums["group", group, *terms[seq]], counts)
        for seq, *counts in connection.execute(_of_sample(project, seqs)):
            _add(sums["sample", "", *terms[seq]], counts)
    return [PeriodCoverage(*key, *counts) for key, counts in sorted(sums.items(), key=_order)]


def _order(item: tuple[tuple[str, str, str, float], list[int]]) -> tuple[Any, ...]:
    slice_, name, model, alpha = item[0]
    place = ("total", "run", "class", "group", "sample").index(slice_)
    return place, int(name) if slice_ == "run" else 0, name, model, alpha


def _add(sums: list[int], counts: Sequence[Any]) -> None:
    for place, count in enumerate(counts):
        sums[place] += int(count or 0)


def _counts() -> list[Any]:
    known = prediction.c.label.is_not(None)
    return [
        func.count(),
        func.sum(case((known, 1), else_=0)),
        func.sum(case((and_(known, prediction.c.covered.is_(True)), 1), else_=0)),
        func.sum(case((prediction.c.unseen.is_(True), 1), else_=0)),
        func.sum(prediction.c.size),
    ]


def _by_class(project: str, seqs: Sequence[int]) -> Any:
    return (
        select(prediction.c.seq, prediction.c.label, *_counts())
        .where(prediction.c.project == project, prediction.c.seq.in_(seqs))
        .group_by(prediction.c.seq, prediction.c.label)
    )


def _by_group(project: str, seqs: Sequence[int]) -> Any:
    name = group_name_column()
    return (
        select(prediction.c.seq, name, *_counts())
        .join(grouping, same_node(grouping))
        .where(prediction.c.project == project, prediction.c.seq.in_(seqs))
        .group_by(prediction.c.seq, name)
    )


def _of_sample(project: str, seqs: Sequence[int]) -> Any:
    return (
        select(prediction.c.seq, *_counts())
        .where(
            prediction.c.project == project,
            prediction.c.seq.in_(seqs),
            IS_SAMPLED,
        )
        .group_by(prediction.c.seq)
    )
