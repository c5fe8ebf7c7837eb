"""Evaluated nodes of known class, as they look to a model version: all, counted, or those of a run.

A run needs the newest of them and those that have not joined yet. There may be a million others, so
it reads counts first; the database computes them, and only few nodes are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, and_, false, func, or_, select

from ringfence.connector.records import KnownNode, Role
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import joined, mark, member, prediction

RUNS_PER_STATEMENT = 500


@dataclass(frozen=True, slots=True)
class KnownCount:
    """How many evaluated nodes of known class agree in all fields of `KnownNode` but the key.

    `selected` nodes were on a list, or a person had said what came out before the class was
    noticed.
    """

    evaluated_in: int
    label: str
    noticed_ns: int
    is_joined: bool
    role: Role | None
    nodes: int
    selected: bool = False
    sampled: bool = False


class KnownNodes:
    """The evaluated nodes of known class of a project; every version's evaluations are among them.

    `role` and `joined_by` are those of `version`.
    """

    def __init__(self, store: Store, project: str, version: str) -> None:
        self.store = store
        self.project = project
        self.version = version

    def all(self) -> list[KnownNode]:
        """Return all of them, by run and key."""
        return list(self._read(self._nodes()))

    def counts(self) -> list[KnownCount]:
        """Return how many there are of each run, class, time of notice, joined or not, and role."""
        alike = (
            prediction.c.seq,
            prediction.c.label,
            prediction.c.labelled_ns,
            joined.c.seq.is_not(None).label("is_joined"),
            member.c.role,
        )
        worked_on = (
            select(mark.c.node_key, func.min(mark.c.at_ns).label("at_ns"))
            .where(mark.c.project == self.project, mark.c.outcome.is_not(None))
            .group_by(mark.c.node_key)
            .subquery()
        )
        selected = or_(
            prediction.c.lists.is_not(None),
            func.coalesce(worked_on.c.at_ns < prediction.c.labelled_ns, false()),
        )
        chosen = (selected.label("selected"), prediction.c.sampled)
        query = self._known(
            select(*alike, func.count(), *chosen), (worked_on, prediction.c.node_key)
        ).group_by(*alike, *chosen)
        with self.store.reading() as connection:
            return [KnownCount(*row) for row in connection.execute(query)]

    def unjoined(self, runs: Collection[int]) -> list[KnownNode]:
        """Return the nodes of some runs that neither joined nor took part in the training."""
        query = self._nodes().where(joined.c.seq.is_(None), member.c.role.is_(None))
        return self._of_runs(query, runs)

    def joined(self, runs: Collection[int], label: str | None = None) -> list[KnownNode]:
        """Return the nodes of some runs that joined, of one class where one is named."""
        query = self._nodes().where(joined.c.seq.is_not(None))
        of_class = query if label is None else query.where(prediction.c.label == label)
        return self._of_runs(of_class, runs)

    def all_joined(self) -> list[KnownNode]:
        """Return the nodes of all runs that joined."""
        return list(self._read(self._nodes().where(joined.c.seq.is_not(None))))

    def members(self) -> dict[str, tuple[int, str]]:
        """Return run and class of those that calibrate since the training, by key."""
        query = self._known(select(prediction.c.node_key, prediction.c.seq, prediction.c.label))
        with self.store.reading() as connection:
            rows = connection.execute(query.where(member.c.role == "calibration"))
            return {row.node_key: (row.seq, row.label) for row in rows}

    def _of_runs(self, query: Select[Any], runs: Collection[int]) -> list[KnownNode]:
        return [
            node
            for part in split(sorted(runs), RUNS_PER_STATEMENT)
            for node in self._read(query.where(prediction.c.seq.in_(part)))
        ]

    def _read(self, query: Select[Any]) -> Iterator[KnownNode]:
        with self.store.reading() as connection:
            for row in connection.execute(query.order_by(prediction.c.seq, prediction.c.node_key)):
                yield KnownNode(*row)

    def _nodes(self) -> Select[Any]:
        """The columns of a `KnownNode`."""
        return self._known(
            select(
                prediction.c.node_key,
                prediction.c.seq,
                prediction.c.label,
                prediction.c.labelled_ns,
                joined.c.seq.label("joined_by"),
                member.c.role,
                prediction.c.sampled,
            )
        )

    def _known(
        self, query: Select[Any], beside: tuple[Subquery, ColumnElement[str]] | None = None
    ) -> Select[Any]:
        """Some columns of the evaluated nodes of known class, with those of a table beside."""
        same_node = [
            and_(
                other.c.project == prediction.c.project,
                other.c.node_key == prediction.c.node_key,
                other.c.version == self.version,
            )
            for other in (joined, member)
        ]
        tables = prediction.outerjoin(joined, same_node[0]).outerjoin(member, same_node[1])
        if beside is not None:
            other, key = beside
            tables = tables.outerjoin(other, other.c.node_key == key)
        return query.select_from(tables).where(
            prediction.c.project == self.project, prediction.c.label.is_not(None)
        )
