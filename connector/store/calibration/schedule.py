"""Who calibrated each run of a model, in counts: what the law of its coverage is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import joined, run


@dataclass(frozen=True, slots=True)
class CalibratedRun:
    """A run's calibration in counts.

    joined: evaluating run -> nodes that had joined by this run, whether or not a window still held
        them. answered: runs whose miss rates moved the level at this run. step: of the level, 0
        where it is fixed.
    """

    seq: int
    n_calibration: int
    calibration_set: str
    joined: Mapping[int, int]
    answered: tuple[int, ...]
    step: float


def calibration_schedule(store: Store, project: str, version: str) -> list[CalibratedRun]:
    """Return who calibrated each run of a model, oldest run first."""
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
    so_far: dict[int, int] = {}
    found = []
    for seq, n_calibration, calibration_set, levels in rows:
        while open_joins and open_joins[0][0] <= seq:
            _, origin, count = open_joins.pop(0)
            so_far[origin] = so_far.get(origin, 0) + count
        answered, step = _levels(levels)
        found.append(
            CalibratedRun(
                int(seq), int(n_calibration), calibration_set, dict(so_far), answered, step
            )
        )
    return found


def _levels(column: str | None) -> tuple[tuple[int, ...], float]:
    """Answered runs and step from the column `levels`."""
    levels: dict[str, Any] = json.loads(column) if column else {}
    steps = [float(one["step"]) for one in levels.get("adaptive", [])]
    return tuple(int(one["run"]) for one in levels.get("answered", [])), max(steps, default=0.0)
