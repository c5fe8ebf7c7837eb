"""The worklist: nodes with a class in their set, surest first, a page at a time on an index.

A page begins after the last row of the page before it (its p-value and key), so that page 2,000
costs what page 1 does. Known and unknown nodes lie in two stretches of the index; if both are
wanted, each gives its first rows and the surest of them are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, func, null, select, tuple_

from ringfence.connector.keys import decode_key
from ringfence.connector.store.models import class_names
from ringfence.connector.store.queries.listed_page import listed_page
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist_filter import (
    Place,
    WorklistFilter,
    bounds_of,
    holder,
    membership_of,
)
from ringfence.connector.store.tables import mark, prediction, run, worklist_entry

PAGE_ROWS = 50
CSV_BLOCK = 5_000


@dataclass(frozen=True, slots=True)
class WorklistNode:
    """A node of the worklist; `state`, `who` and `marked_ns` are of the newest claim or end.

    `p` is that of the class, None where retention removed it, and `place` the node's in the list;
    `share` is the smallest promised share at which the list that was asked for would hold it.
    `who` is whom it was assigned to, where it was claimed for somebody. `outcome`, about the class
    `about`, stands until the node is claimed or opened again; `note` is the newest.
    """

    node_key: str
    p: float | None
    seq: int
    decided_ns: int
    size: int
    degree: int
    label: str | None
    state: str
    who: str | None
    marked_ns: int | None
    outcome: str | None = None
    about: str | None = None
    note: str | None = None
    share: float | None = None
    place: Place = (0.0, "")

    @property
    def key(self) -> str:
        """The key as people write it."""
        return str(decode_key(self.node_key))


def read_worklist(
    queries: ProjectQueries,
    wanted: WorklistFilter,
    rows: int = PAGE_ROWS,
    *,
    backwards: bool = False,
) -> list[WorklistNode]:
    """Return the next nodes of the list, surest first; `backwards` those before, nearest first.

    On a list those of the newest run come first.
    """
    if wanted.list_ is not None:
        page = listed_page(queries, wanted, rows, backwards=backwards)
        return _listed_nodes(queries, wanted, page, backwards)
    nodes = [
        node
        for side in _sides(wanted)
        for node in _nodes(queries, _page(queries, wanted, side, rows, backwards))
    ]
    return sorted(nodes, key=lambda node: node.place, reverse=not backwards)[:rows]


def whole_worklist(queries: ProjectQueries, wanted: WorklistFilter) -> Iterator[WorklistNode]:
    """Yield all nodes of the list, surest first."""
    while block := read_worklist(queries, wanted, CSV_BLOCK):
        yield from block
        wanted = replace(wanted, after=block[-1].place)


def count_worklist(queries: ProjectQueries, wanted: WorklistFilter, most: int) -> int:
    """Return how many nodes the whole list has; counting ends at `most`."""
    every = replace(wanted, after=None)
    if wanted.list_ is not None:
        pages = [listed_page(queries, every, most)]
    else:
        pages = [_page(queries, every, side, most) for side in _sides(wanted)]
    return sum(int(queries.scalar(select(func.count()).select_from(page))) for page in pages)


def beside_on_list(
    queries: ProjectQueries, wanted: WorklistFilter, place: Place
) -> tuple[str | None, str | None]:
    """Return the keys of the nodes before and after a place in the list; None at its ends."""
    here = replace(wanted, after=place)
    before = read_worklist(queries, here, 1, backwards=True)
    after = read_worklist(queries, here, 1)
    return (
        before[0].node_key if before else None,
        after[0].node_key if after else None,
    )


def groups_to_choose(queries: ProjectQueries, limit: int = 200) -> list[tuple[str, str]]:
    """Return property and value of the groups that audits counted."""
    names = {row.name for row in queries.coverage("group", last=limit)}
    return sorted((p, v) for p, is_, v in (name.partition("=") for name in names) if is_)


def _sides(wanted: WorklistFilter) -> tuple[bool, ...]:
    """The stretches of the index that are wanted: of unknown nodes, and of known ones."""
    return {"no": (False,), "yes": (True,), "any": (False, True)}[wanted.known]


def _page(
    queries: ProjectQueries,
    wanted: WorklistFilter,
    known: bool,
    rows: int,
    backwards: bool = False,
) -> Subquery:
    """The rows of one stretch of the index, in its order or against it."""
    here = worklist_entry.c
    chosen = [
        here.project == queries.project,
        here["class"] == wanted.class_,
        here.known.is_(known),
    ]
    if wanted.after is not None:
        place, end = tuple_(here.p, here.node_key), tuple_(*wanted.after)
        chosen.append(place > end if backwards else place < end)
    if wanted.min_p is not None:
        chosen.append(here.p > wanted.min_p)
    chosen += bounds_of(queries, wanted, worklist_entry)
    chosen += [_is_in_graph(), *membership_of(wanted, worklist_entry)]
    order = (here.p, here.node_key) if backwards else (here.p.desc(), here.node_key.desc())
    columns = (here.node_key, here.seq, here.size, here.degree)
    page = select(*columns, here.p.label("rank"), null().label("share")).where(*chosen)
    return page.order_by(*order).limit(rows).subquery()


def _is_in_graph() -> ColumnElement[bool]:
    """Condition that the node of an entry has not left the graph."""
    gone = select(prediction.c.node_key).where(
        prediction.c.project == worklist_entry.c.project,
        prediction.c.node_key == worklist_entry.c.node_key,
        prediction.c.in_graph.is_(False),
    )
    return ~gone.exists()


def _query(queries: ProjectQueries, page: Subquery) -> Select[Any]:
    """The rows of a page with what stands in other tables."""
    of_node = (prediction.c.project == queries.project) & (prediction.c.node_key == page.c.node_key)
    of_run = (run.c.project == queries.project) & (run.c.seq == page.c.seq)
    newest = (mark.c.project == queries.project) & (
        mark.c.n == newest_mark(page.c.node_key, queries.project)
    )
    return (
        select(
            page, prediction.c.label, prediction.c.p_values, run.c.model, run.c.decided_ns,
            mark.c.action, holder(mark), mark.c.at_ns,
            mark.c.outcome, mark.c.about, newest_note(page.c.node_key, queries.project),
        )
        .join(prediction, of_node)
        .join(run, of_run)
        .outerjoin(mark, newest)
    )  # fmt: skip


def newest_note(node_key: ColumnElement[str], project: str) -> Any:
    """The newest note of a node that is not empty."""
    each = mark.alias()
    return (
        select(each.c.note)
        .where(each.c.project == project, each.c.node_key == node_key, each.c.note != "")
        .order_by(each.c.n.desc())
        .limit(1)
        .scalar_subquery()
        .label("note")
    )


def newest_mark(node_key: ColumnElement[str], project: str) -> Any:
    """The number of a node's newest mark that is no note."""
    each = mark.alias()
    of_node = (each.c.project == project, each.c.node_key == node_key, each.c.action != "note")
    return select(func.max(each.c.n)).where(*of_node).scalar_subquery()


def _nodes(queries: ProjectQueries, page: Subquery) -> list[WorklistNode]:
    """The nodes of a page, in any order."""
    rows = queries.rows(_query(queries, page))
    return [_node(row, row["rank"], (row["rank"], row["node_key"])) for row in rows]


def _listed_nodes(
    queries: ProjectQueries, wanted: WorklistFilter, page: Subquery, backwards: bool
) -> list[WorklistNode]:
    """The nodes of a page of a list, in its order."""
    places = {
        version: names.index(wanted.class_) if wanted.class_ in names else None
        for version, names in class_names(queries.store, queries.project).items()
    }
    here = page.c
    order: tuple[ColumnElement[Any], ...] = (here.seq.desc(), here.rank, here.node_key)
    if backwards:
        order = (here.seq, here.rank.desc(), here.node_key.desc())
    return [
        _node(
            row,
            _p_of_class(row["p_values"], places.get(row["model"])),
            (row["seq"], row["rank"], row["node_key"]),
        )
        for row in queries.rows(_query(queries, page).order_by(*order))
    ]


def _p_of_class(p_values: str, place: int | None) -> float | None:
    """The p-value of a class on record; None where retention removed it."""
    values: list[float | None] = json.loads(p_values)
    return None if place is None or place >= len(values) else values[place]


def _node(row: Mapping[str, Any], p: float | None, place: Place) -> WorklistNode:
    return WorklistNode(
        row["node_key"], p, row["seq"], row["decided_ns"], row["size"], row["degree"],
        row["label"], state_of(row["action"]), row["who"], row["at_ns"], row["outcome"],
        row["about"], row["note"], row["share"], place,
    )  # fmt: skip


def state_of(action: str | None) -> str:
    """Return what a node's newest mark says: free, claimed or done."""
    return {"claim": "claimed", "done": "done"}.get(action or "", "free")
