"""Counts from the predictions: per run, per class, per group, now or as of any date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, Subquery, and_, case, func, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import grouping, label, prediction, run

By = Literal["run", "class", "group"]
Terms = tuple[str, str, str, float, str, bool]
"""Model, rule, score, alpha, the other options, whether all calibration nodes counted alike."""

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
    nodes and over those of known class.
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

    @property
    def terms(self) -> Terms:
        """What must be the same for runs to be counted together.

        Weighted runs (drift, EdgeEx) stand apart: the smallest effective number of calibration
        nodes counts for all, so a single one would widen the band of every run before it.
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
    changed later still has its old value, runs decided later are left out.
    """
    counted: list[Tally] = []
    with store.reading() as connection:
        for version, classes in class_counts.items():
            query = _query(project, version, classes, by, as_of_ns)
            counted += [_tally(row) for row in connection.execute(query).mappings()]
    return sorted(counted, key=lambda tally: (tally.seq, tally.name))


def merged(parts: Sequence[Tally]) -> Tally:
    """Return the sum of tallies of one model, at the last of their runs."""
    last = parts[-1]
    return Tally(
        last.seq,
        last.model,
        last.rule,
        last.score,
        last.alpha,
        last.options,
        min(part.n_calibration for part in parts),
        min(part.effective_calibration for part in parts),
        last.name,
        {name: sum(part.counts[name] for part in parts) for name in COUNTS},
        {name: sum(part.sums[name] for part in parts) for name in SUMS},
    )


def _query(project: str, version: str, classes: int, by: By, as_of_ns: int | None) -> Select[Any]:
    known = prediction if as_of_ns is None else _as_of(project, as_of_ns)
    noticed = known.c.label.is_not(None)
    name: Any = {"run": "", "class": known.c.label, "group": _group_name()}[by]
    name = func.coalesce(name, "") if by == "run" else name
    terms = (
        run.c.seq, run.c.model, run.c.rule, run.c.score, run.c.alpha, run.c.options,
        run.c.n_calibration, run.c.effective_calibration,
    )  # fmt: skip
    query = (
        select(*terms, name.label("name"), *_counts(known, noticed, classes), *_sums(noticed))
        .select_from(run)
        .join(
            prediction, and_(run.c.project == prediction.c.project, run.c.seq == prediction.c.seq)
        )
        .where(run.c.project == project, run.c.model == version)
        .group_by(*terms, *(() if by == "run" else (name,)))
    )
    if as_of_ns is not None:
        query = query.outerjoin(known, known.c.node_key == prediction.c.node_key)
        query = query.where(run.c.decided_ns <= as_of_ns)
    if by == "class":
        query = query.where(noticed)
    if by == "group":
        query = query.join(
            grouping,
            and_(
                grouping.c.project == prediction.c.project,
                grouping.c.node_key == prediction.c.node_key,
            ),
        )
    return query


def _as_of(project: str, ns: int) -> Subquery:
    """The newest class of each node among those noticed by then."""
    newest = (
        select(label.c.node_key, func.max(label.c.noticed_ns).label("at"))
        .where(label.c.project == project, label.c.noticed_ns <= ns)
        .group_by(label.c.node_key)
        .subquery()
    )
    same = and_(label.c.node_key == newest.c.node_key, label.c.noticed_ns == newest.c.at)
    return select(label).join(newest, same).where(label.c.project == project).subquery("known")


def _group_name() -> Any:
    return grouping.c.property + "=" + grouping.c.value


def _counts(known: Any, noticed: ColumnElement[bool], classes: int) -> list[Any]:
    single, hit = prediction.c.size == 1, known.c.covered.is_(True)
    conditions = {
        "known": noticed,
        "covered": hit,
        "covered_naive": known.c.covered_naive.is_(True),
        "unseen": known.c.unseen.is_(True),
        "singletons": single,
        "singletons_known": and_(single, noticed),
        "singleton_hits": and_(single, hit),
        "empty": prediction.c.size == 0,
        "full": prediction.c.size == classes,
    }
    counted = [
        func.sum(case((condition, 1), else_=0)).label(name)
        for name, condition in conditions.items()
    ]
    return [func.count().label("evaluated"), *counted]


def _sums(noticed: ColumnElement[bool]) -> list[Any]:
    columns = []
    for quantity in QUANTITIES:
        every = func.coalesce(prediction.c[quantity], 0) * 1.0
        for side, value in (("all", every), ("known", case((noticed, every), else_=0.0))):
            columns.append(func.sum(value).label(f"{quantity}_{side}"))
            columns.append(func.sum(value * value).label(f"{quantity}_{side}_squared"))
    return columns


def _tally(row: Any) -> Tally:
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
    )
