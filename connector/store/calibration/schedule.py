"""Counts of the calibration nodes of each run of a model: the input of its coverage law."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Subquery, and_, func, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import joined, member, model, prediction, run

JUDGED_TODAY = "today"
"""`rule` of a recorded level that judges answered runs at the level of the day."""


@dataclass(frozen=True, slots=True)
class CalibratedRun:
    """A run's calibration in counts.

    joined: evaluating run -> nodes of it that could calibrate this run, whether or not a window
        still held them. answered: runs whose miss rates moved the level at this run. step: of the
        level, 0 if it is fixed. is_own: whether this version decided the run; a run of another
        version is listed for the nodes that joined from it, and its other values mean nothing.
        judged_today: whether answered runs were judged at the level of that day and not at the one
        that they had used.
    """

    seq: int
    n_calibration: int
    calibration_set: str
    joined: Mapping[int, int]
    answered: tuple[int, ...]
    step: float
    is_own: bool = True
    judged_today: bool = False


def calibration_schedule(
    store: Store, project: str, version: str, calibrating: float = 1.0
) -> list[CalibratedRun]:
    """Return the calibration counts of each run of a version, and of other runs that gave nodes.

    `calibrating` is the share of the joined nodes that calibrate: those of the holdout only move
    the level. How many of a run's nodes are in it is not on record; the counts are expected.
    """
    runs = (
        select(run.c.seq, run.c.n_calibration, run.c.calibration_set, run.c.levels)
        .where(run.c.project == project, run.c.model == version)
        .order_by(run.c.seq)
    )
    joins = (
        select(joined.c.seq, joined.c.evaluated_seq, func.count())
        .where(joined.c.project == project, joined.c.version == version)
        .group_by(joined.c.seq, joined.c.evaluated_seq)
        .order_by(joined.c.seq)
    )
    with store.reading() as connection:
        open_joins = [tuple(map(int, row)) for row in connection.execute(joins)]
        rows = connection.execute(runs).all()
        so_far = _drawn(connection, project, version)
    schedule = []
    for seq, n_calibration, calibration_set, levels in rows:
        while open_joins and open_joins[0][0] <= seq:
            _, origin, count = open_joins.pop(0)
            so_far[origin] = so_far.get(origin, 0.0) + calibrating * count
        counts = {origin: round(count) for origin, count in so_far.items()}
        answered, step, judged_today = _levels(levels)
        schedule.append(
            CalibratedRun(
                int(seq),
                int(n_calibration),
                calibration_set,
                counts,
                answered,
                step,
                judged_today=judged_today,
            )
        )
    given = set(so_far) - {run_.seq for run_ in schedule}
    schedule += [CalibratedRun(seq, 0, "frozen", {}, (), 0.0, is_own=False) for seq in given]
    return sorted(schedule, key=lambda run_: run_.seq)


def joined_until(
    seq: int, joins: Sequence[tuple[int, int, int]], drawn: Mapping[int, int], calibrating: float
) -> dict[int, int]:
    """Return evaluating run -> nodes of it that had joined by a run.

    joins: run by which nodes joined, run that had evaluated them, how many.
    """
    so_far: dict[int, float] = dict(drawn)
    for at, origin, count in joins:
        if at <= seq:
            so_far[origin] = so_far.get(origin, 0.0) + calibrating * count
    return {origin: round(count) for origin, count in so_far.items()}


def drawn_at_training(connection: Connection, project: str, version: str) -> Subquery | None:
    """Calibration nodes of the training that an earlier version had evaluated; None without.

    With their class (a number) and the run that evaluated them.
    """
    trained = select(model.c.trained_ns).where(
        model.c.project == project, model.c.version == version
    )
    before = select(run.c.seq).where(
        run.c.project == project, run.c.decided_ns < trained.scalar_subquery()
    )
    if connection.execute(before.limit(1)).first() is None:
        return None
    same = and_(
        prediction.c.project == member.c.project, prediction.c.node_key == member.c.node_key
    )
    of = member.c
    return (
        select(prediction.c.seq, of.node_key, of.class_index)
        .select_from(member)
        .join(prediction, same)
        .where(of.project == project, of.version == version, of.role == "calibration")
        .subquery("drawn")
    )


def _drawn(connection: Connection, project: str, version: str) -> dict[int, float]:
    """How many of them each run evaluated."""
    drawn = drawn_at_training(connection, project, version)
    if drawn is None:
        return {}
    query = select(drawn.c.seq, func.count()).group_by(drawn.c.seq)
    return {int(seq): float(count) for seq, count in connection.execute(query)}


def _levels(column: str | None) -> tuple[tuple[int, ...], float, bool]:
    """Answered runs, step and whether they were judged at today's level, from `levels`."""
    levels: dict[str, Any] = json.loads(column) if column else {}
    states = levels.get("adaptive", [])
    return (
        tuple(int(state["run"]) for state in levels.get("answered", [])),
        max((float(state["step"]) for state in states), default=0.0),
        any(state.get("rule") == JUDGED_TODAY for state in states),
    )
