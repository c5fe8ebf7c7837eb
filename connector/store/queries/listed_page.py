"""Nodes on a list (`[[lists]]`), or on none: newest run first, and within a run the surest first.

Shares of two runs are not compared: each run judged its nodes on its own. A page walks the index of
runs backwards and sorts within a run alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Subquery, and_, case, func, null, or_, select, tuple_

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist_filter import (
    NO_LIST,
    Place,
    WorklistFilter,
    bounds_of,
    known_of,
    membership_of,
)
from ringfence.connector.store.tables import prediction, run, worklist_entry

Value = ColumnElement[Any]


def listed_page(
    queries: ProjectQueries, wanted: WorklistFilter, rows: int, *, backwards: bool = False
) -> Subquery:
    """The next nodes of a list in its order, or those before a place, nearest first.

    `rank` is what nodes of a run are sorted by, `share` the share on the list.
    """
    here = prediction.c
    share, rank, on_list = _on_list(queries, wanted)
    chosen = [here.project == queries.project, here.in_graph.is_(True), *on_list]
    if wanted.not_runs:
        chosen.append(here.seq.not_in(wanted.not_runs))
    chosen += known_of(wanted.known)
    chosen += bounds_of(queries, wanted, prediction)
    chosen += membership_of(wanted, prediction)
    chosen += _after(wanted, rank, backwards)
    order = (
        (here.seq, rank.desc(), here.node_key.desc())
        if backwards
        else (here.seq.desc(), rank, here.node_key)
    )
    columns = (here.node_key, here.seq, here.size, here.degree)
    page = select(*columns, rank.label("rank"), share.label("share")).where(*chosen)
    return page.order_by(*order).limit(rows).subquery()


def place_on_list(queries: ProjectQueries, wanted: WorklistFilter, node_key: str) -> Place | None:
    """Return a node's place on a list, as its pages are sorted; None where it is not on it."""
    here = prediction.c
    _, rank, on_list = _on_list(queries, wanted)
    of_node = (here.project == queries.project, here.node_key == node_key)
    rows = queries.rows(select(here.seq, rank.label("rank")).where(*of_node, *on_list))
    return (rows[0]["seq"], rows[0]["rank"], node_key) if rows else None


def count_open(queries: ProjectQueries, seq: int) -> int:
    """Return how many nodes of a run are of unknown class and still in the graph."""
    query = select(func.count()).select_from(prediction)
    return int(queries.scalar(query.where(*_open_of_run(queries, seq))))


def count_at_shares(
    queries: ProjectQueries, seq: int, name: str, shares: Sequence[float]
) -> list[int]:
    """Return of each share how many open nodes of a run a list of its run would hold at it.

    Only nodes on the list have a share on record: beyond the promised one there are more.
    """
    share = queries.store.dialect.json_number(prediction.c.lists, name)
    counted = [
        func.coalesce(func.sum(case((share <= bound, 1), else_=0)), 0).label(f"at_{place}")
        for place, bound in enumerate(shares)
    ]
    listed = (*_open_of_run(queries, seq), prediction.c.lists.is_not(None))
    (row,) = queries.rows(select(*counted).where(*listed))
    return [int(row[f"at_{place}"]) for place in range(len(shares))]


def _open_of_run(queries: ProjectQueries, seq: int) -> tuple[ColumnElement[bool], ...]:
    here = prediction.c
    of_run = (here.project == queries.project, here.seq == seq)
    return (*of_run, here.label.is_(None), here.in_graph.is_(True))


def _on_list(
    queries: ProjectQueries, wanted: WorklistFilter
) -> tuple[Value, Value, list[ColumnElement[bool]]]:
    """The share of a node on the list, what nodes of a run are sorted by, and who is on it."""
    here = prediction.c
    if wanted.list_ == NO_LIST:
        with_lists = select(run.c.seq).where(
            run.c.project == queries.project, run.c.lists.is_not(None)
        )
        return null(), _of_class(wanted), [here.lists.is_(None), here.seq.in_(with_lists)]
    share: Value = queries.store.dialect.json_number(here.lists, wanted.list_ or "")
    return share, share, [here.lists.is_not(None), share.is_not(None)]


def _of_class(wanted: WorklistFilter) -> ColumnElement[float]:
    """What nodes on no list are sorted by: minus the p-value of a class in their set, or 0."""
    entry = worklist_entry.c
    p = select(entry.p).where(
        entry.project == prediction.c.project,
        entry.node_key == prediction.c.node_key,
        entry["class"] == wanted.class_,
    )
    return -func.coalesce(p.scalar_subquery(), 0.0)


def _after(
    wanted: WorklistFilter, rank: ColumnElement[float], backwards: bool
) -> list[ColumnElement[bool]]:
    """The condition of what comes after a place, or before it."""
    if wanted.after is None or len(wanted.after) != 3:
        return []
    seq, *end = wanted.after
    here = prediction.c
    place, last = tuple_(rank, here.node_key), tuple_(*end)
    if backwards:
        return [or_(here.seq > seq, and_(here.seq == seq, place < last))]
    return [or_(here.seq < seq, and_(here.seq == seq, place > last))]
