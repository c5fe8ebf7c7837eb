"""How many nodes each run put on each list, by class: counted in SQL, not read node by node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from ringfence.connector.records import UNSETTLED
from ringfence.connector.store.tables import coverage, grouping, prediction
from ringfence.connector.store.thresholds.strata import same_node
from ringfence.connector.store.worklist.listed_nodes import ListedRun


@dataclass(frozen=True, slots=True)
class ListCount:
    """How many listed nodes of a run agree in all of this; `label` is None while unknown."""

    seq: int
    name: str
    label: str | None
    sampled: bool
    nodes: int
    group: str = ""


def list_counts(
    connection: Connection, project: str, runs: Sequence[ListedRun], *, groups: bool = False
) -> list[ListCount]:
    """Return the counts of all lists of some runs; by `property=value` with `groups`."""
    names = sorted({facts.terms.name for run in runs for facts in run.lists})
    return [count for name in names for count in _counts(connection, project, name, groups)]


def early_runs(connection: Connection, project: str) -> frozenset[int]:
    """Return the runs on which no verdict of coverage may rest yet, as the newest audit said."""
    rows = connection.execute(
        select(coverage.c.seq)
        .where(
            coverage.c.project == project,
            coverage.c.slice == "run",
            coverage.c.raised_by == UNSETTLED,
        )
        .distinct()
    )
    return frozenset(rows.scalars())


def _counts(connection: Connection, project: str, name: str, groups: bool) -> Iterator[ListCount]:
    here = prediction.c
    alike: list[ColumnElement[Any]] = [here.seq, here.label, here.sampled]
    query: Select[Any] = select(*alike, func.count().label("nodes"))
    if groups:
        alike += [grouping.c.property, grouping.c.value]
        query = select(*alike, func.count().label("nodes")).join(grouping, same_node(grouping))
    key = f'"{name}":'  # names are letters, digits, - and _; LIKE would not tell A from a
    is_on = func.replace(here.lists, key, "") != here.lists
    query = query.where(here.project == project, here.lists.is_not(None), is_on).group_by(*alike)
    for row in connection.execute(query):
        group = f"{row.property}={row.value}" if groups else ""
        yield ListCount(row.seq, name, row.label, bool(row.sampled), row.nodes, group)
