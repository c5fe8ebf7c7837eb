"""Outcomes of one run's nodes, by class: counted from its predictions, by their index.

Pages read one run at a time, and none with more nodes than `MAX_COUNTED_NODES`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import case, func, select

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tables import prediction

MAX_COUNTED_NODES = 50_000


@dataclass(frozen=True, slots=True)
class ClassOutcome:
    """A class in one run: sets that hold it, sets that hold nothing else, its known nodes.

    `mean_size` is that of the sets of its known nodes, None where none is known.
    """

    name: str
    in_sets: int
    alone: int
    known: int
    covered: int
    mean_size: float | None

    @property
    def coverage(self) -> float | None:
        """Share of its known nodes whose set held it."""
        return self.covered / self.known if self.known else None


def class_outcomes(queries: ProjectQueries, seq: int) -> list[ClassOutcome]:
    """Return the classes of a run, those in most sets first."""
    of_run = (prediction.c.project == queries.project, prediction.c.seq == seq)
    sets = select(prediction.c.classes, func.count().label("nodes")).where(*of_run)
    in_sets: dict[str, int] = {}
    alone: dict[str, int] = {}
    for row in queries.rows(sets.group_by(prediction.c.classes)):
        names = json.loads(row["classes"])
        for name in names:
            in_sets[name] = in_sets.get(name, 0) + row["nodes"]
        if len(names) == 1:
            alone[names[0]] = alone.get(names[0], 0) + row["nodes"]
    known = (
        select(
            prediction.c.label,
            func.count().label("known"),
            func.sum(case((prediction.c.covered.is_(True), 1), else_=0)).label("covered"),
            func.sum(prediction.c.size * 1.0).label("classes"),
        )
        .where(*of_run, prediction.c.label.is_not(None))
        .group_by(prediction.c.label)
    )
    labelled = {row["label"]: row for row in queries.rows(known)}
    outcomes = [
        _outcome(name, in_sets.get(name, 0), alone.get(name, 0), labelled.get(name))
        for name in {*in_sets, *labelled}
    ]
    return sorted(outcomes, key=lambda outcome: (-outcome.in_sets, -outcome.known, outcome.name))


def _outcome(name: str, in_sets: int, alone: int, row: dict[str, int] | None) -> ClassOutcome:
    if row is None:
        return ClassOutcome(name, in_sets, alone, 0, 0, None)
    known = int(row["known"])
    return ClassOutcome(name, in_sets, alone, known, int(row["covered"]), row["classes"] / known)
