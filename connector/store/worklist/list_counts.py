"""How many nodes each run put on each list, by class: counted in SQL, not read node by node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

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
    return list(_counts(connection, project, names, groups))


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


def _counts(
    connection: Connection, project: str, names: Sequence[str], groups: bool
) -> Iterator[ListCount]:
    """Go over the listed nodes once, whatever the number of lists."""
    here = prediction.c
    alike: list[ColumnElement[Any]] = [here.seq, here.label, here.sampled]
    if groups:
        alike += [grouping.c.property, grouping.c.value]
    on_lists = [func.sum(case((_is_on(name), 1), else_=0)) for name in names]
    query: Select[Any] = select(*alike, *on_lists)
    if groups:
        query = query.join(grouping, same_node(grouping))
    query = query.where(here.project == project, here.lists.is_not(None)).group_by(*alike)
    for row in connection.execute(query):
        group = f"{row.property}={row.value}" if groups else ""
        for name, nodes in zip(names, row[len(alike) :], strict=True):
            if nodes:
                yield ListCount(row.seq, name, row.label, bool(row.sampled), int(nodes), group)


def _is_on(name: str) -> ColumnElement[bool]:
    key = f'"{name}":'  # names are letters, digits, - and _; LIKE would not tell A from a
    return func.replace(prediction.c.lists, key, "") != prediction.c.lists
