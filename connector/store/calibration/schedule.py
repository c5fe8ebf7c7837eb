"""Who calibrated each run of a model, in counts: what the law of its coverage is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, and_, func, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import joined, member, model, prediction, run, threshold
from ringfence.connector.store.thresholds.recorded import band_place


@dataclass(frozen=True, slots=True)
class CalibratedRun:
    """A run's calibration in counts.

    joined: evaluating run -> nodes of it that could calibrate this run, whether or not a window
        still held them. answered: runs whose miss rates moved the level at this run. step: of the
        level, 0 where it is fixed. own: whether the version itself decided the run; one of another
        version is here for the nodes that it gave, and its other values say nothing.
    """

    seq: int
    n_calibration: int
    calibration_set: str
    joined: Mapping[int, int]
    answered: tuple[int, ...]
    step: float
    own: bool = True


def calibration_schedule(
    store: Store, project: str, version: str, calibrating: float = 1.0
) -> list[CalibratedRun]:
    """Return who calibrated each run of a version, and the runs of others that gave nodes.

    `calibrating` is the share of the joined nodes that calibrate: those of the holdout answer for
    the level alone. How many of a run's nodes are in it is not on record; the counts are expected.
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
        so_far: dict[int, float] = dict(_drawn_at_training(connection, project, version))
    found = []
    for seq, n_calibration, calibration_set, levels in rows:
        while open_joins and open_joins[0][0] <= seq:
            _, origin, count = open_joins.pop(0)
            so_far[origin] = so_far.get(origin, 0.0) + calibrating * count
        counts = {origin: round(count) for origin, count in so_far.items()}
        found.append(
            CalibratedRun(
                int(seq),
                int(n_calibration),
                calibration_set,
                counts,
                *_levels(levels),
            )
        )
    given = set(so_far) - {one.seq for one in found}
    found += [CalibratedRun(seq, 0, "frozen", {}, (), 0.0, own=False) for seq in given]
    return sorted(found, key=lambda one: one.seq)


def class_schedules(
    store: Store, project: str, version: str, classes: Sequence[str], calibrating: float = 1.0
) -> dict[str, list[CalibratedRun]]:
    """Return who calibrated the promise of each class: `calibration_schedule` of its nodes alone.

    `classes` are those of the version, in the order of its outputs. A run that has no threshold of
    a class on record is none of its own.
    """
    joins = (
        select(joined.c.label, joined.c.seq, joined.c.evaluated_seq, func.count())
        .where(joined.c.project == project, joined.c.version == version)
        .group_by(joined.c.label, joined.c.seq, joined.c.evaluated_seq)
    )
    of = threshold.c
    sizes = (
        select(of["class"], of.seq, of.alpha, of.band, of.n_calibration)
        .join(run, and_(run.c.project == of.project, run.c.seq == of.seq))
        .where(of.project == project, run.c.model == version)
    )
    with store.reading() as connection:
        came = [tuple(row) for row in connection.execute(joins)]
        bands: dict[tuple[str, int], dict[float, dict[str, int]]] = {}
        for name, seq, alpha, band, n in connection.execute(sizes):
            bands.setdefault((name, int(seq)), {}).setdefault(alpha, {})[band] = int(n)
        drawn = [
            _drawn_at_training(connection, project, version, index) for index in range(len(classes))
        ]
    whole = calibration_schedule(store, project, version, calibrating)
    held = {of_run: count_judges(next(iter(one.values()))) for of_run, one in bands.items()}
    found = {}
    for index, name in enumerate(classes):
        own = [(int(seq), int(origin), int(n)) for label, seq, origin, n in came if label == name]
        found[name] = [
            replace(
                one,
                n_calibration=held.get((name, one.seq), 0),
                joined=_joined_until(one.seq, own, drawn[index], calibrating) if one.own else {},
                own=one.own and (name, one.seq) in held,
            )
            for one in whole
        ]
    return found


def count_judges(by_band: Mapping[str, int]) -> int:
    """Return how many calibration nodes of one class judge somebody, from those of each band.

    Bands are cut so that they serve all classes. Neighbouring bands that one class does not tell
    apart have the same calibration nodes of it, and so the same number of them, which counts once.
    (Bands that differ and have equally many count once too: the law then is a little too wide.)

    >>> count_judges({"0-4": 40, "5-9": 40, "10+": 60})
    100
    """
    sizes = [by_band[band] for band in sorted(by_band, key=band_place)]
    return sum(n for n, before in zip(sizes, [None, *sizes], strict=False) if n != before)


def _joined_until(
    seq: int, joins: Sequence[tuple[int, int, int]], drawn: Mapping[int, int], calibrating: float
) -> dict[int, int]:
    """Evaluating run -> nodes of it that had joined by a run."""
    so_far: dict[int, float] = dict(drawn)
    for at, origin, count in joins:
        if at <= seq:
            so_far[origin] = so_far.get(origin, 0.0) + calibrating * count
    return {origin: round(count) for origin, count in so_far.items()}


def _drawn_at_training(
    connection: Connection, project: str, version: str, class_index: int | None = None
) -> dict[int, int]:
    """Calibration nodes of the training that an earlier version had evaluated, by that run."""
    trained = select(model.c.trained_ns).where(
        model.c.project == project, model.c.version == version
    )
    before = select(run.c.seq).where(
        run.c.project == project, run.c.decided_ns < trained.scalar_subquery()
    )
    if connection.execute(before.limit(1)).first() is None:
        return {}
    same = and_(
        prediction.c.project == member.c.project, prediction.c.node_key == member.c.node_key
    )
    query = (
        select(prediction.c.seq, func.count())
        .select_from(member)
        .join(prediction, same)
        .where(
            member.c.project == project,
            member.c.version == version,
            member.c.role == "calibration",
        )
        .group_by(prediction.c.seq)
    )
    if class_index is not None:
        query = query.where(member.c.class_index == class_index)
    return {int(seq): int(count) for seq, count in connection.execute(query)}


def _levels(column: str | None) -> tuple[tuple[int, ...], float]:
    """Answered runs and step from the column `levels`."""
    levels: dict[str, Any] = json.loads(column) if column else {}
    steps = [float(one["step"]) for one in levels.get("adaptive", [])]
    return tuple(int(one["run"]) for one in levels.get("answered", [])), max(steps, default=0.0)
