"""Counts from the predictions: per run, class, group, audit sample; now or as of any date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import further_set, grouping, prediction, run
from ringfence.connector.store.thresholds.strata import (
    WHOLE_RUN,
    By,
    StrataById,
    StratumCounts,
    classes_as_of,
    group_name_column,
    known_strata,
    same_node,
)
from ringfence.connector.store.worklist.sampled_nodes import IS_SAMPLED

Terms = tuple[str, str, str, float, str, bool]
"""Model, rule, score, alpha, the other options, whether all calibration nodes had equal weight."""

COUNTS = (
    "evaluated", "known", "covered", "covered_naive", "unseen",
    "singletons", "singletons_known", "singleton_hits", "empty", "full",
)  # fmt: skip
QUANTITIES = ("degree", "size", "top_p")
SUMS = tuple(f"{q}_{side}{power}" for q in QUANTITIES for side in ("all", "known")
             for power in ("", "_squared"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts and sums of some predictions of one run, with the terms that they were made under.

    `sums` holds for degree, size and top_p the sum and the sum of squares, over all evaluated
    nodes and over those of known class. `strata` has, for each run, the nodes of known class by
    the threshold that judged their class; empty for runs from before there were several.
    `classes_naive` is the sum of the sizes of the naive sets; None where it is not on record, and
    for single classes and groups.
    """

    seq: int
    model: str
    rule: str
    score: str
    alpha: float
    options: str
    n_calibration: int
    effective_calibration: float
    name: str
    counts: Mapping[str, int]
    sums: Mapping[str, float]
    promise: str = "marginal"
    calibration_set: str = "frozen"
    adapt: bool = False
    first: bool = True
    strata: tuple[tuple[StratumCounts, ...], ...] = ()
    classes_naive: float | None = None

    @property
    def terms(self) -> Terms:
        """What must be the same for runs to be counted together.

        Weighted runs (drift, EdgeEx) are counted separately: the smallest effective number of
        calibration nodes counts for all, so a single one would widen the band of every run before
        it.
        """
        weighted = self.effective_calibration != self.n_calibration
        return self.model, self.rule, self.score, self.alpha, self.options, not weighted


def tallies(
    store: Store,
    project: str,
    class_counts: Mapping[str, int],
    by: By = "run",
    as_of_ns: int | None = None,
) -> list[Tally]:
    """Return tallies, oldest run first; `class_counts` says how many classes each model has.

    `as_of_ns` counts what was known then: classes noticed later don't exist yet, a class that
    changed later still has its old value, runs decided later are left out, and so are the alphas
    after the first, whose sets are compared with the newest class alone.
    """
    counted: list[Tally] = []
    with store.reading() as connection:
        for version, classes in class_counts.items():
            strata = known_strata(connection, project, version, by, as_of_ns)
            for further in (False, True) if as_of_ns is None else (False,):
                query = _query(project, version, classes, by, as_of_ns, further)
                rows = connection.execute(query).mappings()
                counted += [_tally(row, strata, by, first=not further) for row in rows]
    return sorted(counted, key=lambda tally: (tally.seq, tally.name, tally.first, tally.alpha))


def _query(
    project: str, version: str, classes: int, by: By, as_of_ns: int | None, further: bool
) -> Select[Any]:
    """Count the sets at the first alpha of each run, or (`further`) at every other one."""
    known = prediction if as_of_ns is None else classes_as_of(project, as_of_ns)
    noticed = known.c.label.is_not(None)
    names = {"run": "", "sample": "", "class": known.c.label, "group": group_name_column()}
    name: Any = names[by]
    name = func.coalesce(name, "") if by in WHOLE_RUN else name
    alpha, size, covered = run.c.alpha, prediction.c.size, known.c.covered
    if further:
        alpha, size, covered = further_set.c.alpha, further_set.c.size, further_set.c.covered
    terms = (
        run.c.seq, run.c.model, run.c.rule, run.c.score, alpha.label("alpha"), run.c.options,
        run.c.n_calibration, run.c.effective_calibration, run.c.promise, run.c.calibration_set,
        run.c.adapt, run.c.mean_size_naive,
    )  # fmt: skip
    sets = _Sets(size, covered, noticed)
    query = (
        select(*terms, name.label("name"), *_counts(known, sets, classes), *_sums(sets))
        .select_from(run)
        .join(
            prediction, and_(run.c.project == prediction.c.project, run.c.seq == prediction.c.seq)
        )
        .where(run.c.project == project, run.c.model == version)
        .group_by(*terms, *(() if by in WHOLE_RUN else (name,)))
    )
    if further:
        query = query.join(further_set, same_node(further_set))
    if as_of_ns is not None:
        query = query.outerjoin(known, known.c.node_key == prediction.c.node_key)
        query = query.where(run.c.decided_ns <= as_of_ns)
    if by == "class":
        query = query.where(noticed)
    if by == "sample":
        query = query.where(IS_SAMPLED)
    if by == "group":
        query = query.join(grouping, same_node(grouping))
    return query


@dataclass(frozen=True, slots=True)
class _Sets:
    """The columns of the sets that are counted, and the condition that a node's class is known."""

    size: ColumnElement[Any]
    covered: ColumnElement[Any]
    noticed: ColumnElement[bool]


def _counts(known: Any, sets: _Sets, classes: int) -> list[Any]:
    single, hit = sets.size == 1, and_(sets.noticed, sets.covered.is_(True))
    conditions = {
        "known": sets.noticed,
        "covered": hit,
        "covered_naive": known.c.covered_naive.is_(True),
        "unseen": known.c.unseen.is_(True),
        "singletons": single,
        "singletons_known": and_(single, sets.noticed),
        "singleton_hits": and_(single, hit),
        "empty": sets.size == 0,
        "full": sets.size == classes,
    }
    counted = [
        func.sum(case((condition, 1), else_=0)).label(name)
        for name, condition in conditions.items()
    ]
    return [func.count().label("evaluated"), *counted]


def _sums(sets: _Sets) -> list[Any]:
    columns = []
    for quantity in QUANTITIES:
        value = sets.size if quantity == "size" else prediction.c[quantity]
        every = func.coalesce(value, 0) * 1.0
        for side, part in (("all", every), ("known", case((sets.noticed, every), else_=0.0))):
            columns.append(func.sum(part).label(f"{quantity}_{side}"))
            columns.append(func.sum(part * part).label(f"{quantity}_{side}_squared"))
    return columns


def _tally(row: Any, strata: StrataById, by: By, *, first: bool) -> Tally:
    judged = strata.get((int(row["seq"]), float(row["alpha"]), row["name"]), [])
    if row["unseen"] and judged and all(stratum.class_ for stratum in judged):
        judged = [*judged, _never_seen(row)]  # thresholds of single classes judged the others
    naive = row["mean_size_naive"] if first and by == "run" else None
    return Tally(
        int(row["seq"]),
        row["model"],
        row["rule"],
        row["score"],
        row["alpha"],
        row["options"],
        int(row["n_calibration"]),
        float(row["effective_calibration"]),
        row["name"],
        {name: int(row[name]) for name in COUNTS},
        {name: float(row[name]) for name in SUMS},
        row["promise"],
        row["calibration_set"],
        bool(row["adapt"]),
        first,
        (tuple(judged),),
        None if naive is None else naive * int(row["evaluated"]),
    )


def _never_seen(row: Any) -> StratumCounts:
    """Nodes of classes that the model does not have: no threshold of a class judged them."""
    size, effective = int(row["n_calibration"]), float(row["effective_calibration"])
    return StratumCounts(size, effective, row["alpha"], int(row["unseen"]), 0)
