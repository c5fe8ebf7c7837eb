"""The worklist: nodes with a class in their set, surest first, a page at a time on an index.

A page begins after the last row of the page before it (its p-value and key), so that page 2,000
costs what page 1 does. Known and unknown nodes lie in two stretches of the index; if both are
wanted, each gives its first rows and the surest of them are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    Subquery,
    Table,
    func,
    or_,
    select,
    tuple_,
)

from ringfence.connector.keys import decode_key
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tables import grouping, mark, prediction, run, worklist_entry
from ringfence.connector.store.worklist.marks import OUTCOMES

Known = Literal["no", "yes", "any"]
State = Literal["open", "free", "claimed", "done", "confirmed", "false alarm", "undecided", "any"]
PAGE_ROWS = 50
CSV_BLOCK = 5_000


@dataclass(frozen=True, slots=True)
class WorklistFilter:
    """Which nodes to list: those with `class_` in their set, and further conditions.

    `state` is what people did with a node: `free` not claimed, `claimed` by someone, `done`
    finished, `open` free or claimed; an outcome is one of the finished. `by` is who has claimed or
    finished it. `after` is the last row of the page before.
    """

    class_: str
    min_p: float | None = None
    min_size: int | None = None
    max_size: int | None = None
    min_degree: int | None = None
    max_degree: int | None = None
    run: int | None = None
    from_ns: int | None = None
    until_ns: int | None = None
    group: str | None = None
    value: str | None = None
    known: Known = "no"
    state: State = "open"
    by: str | None = None
    after: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class WorklistNode:
    """A node of the worklist; `state`, `who` and `marked_ns` are of the newest claim or end.

    `who` is whom it was assigned to, where it was claimed for somebody. `outcome`, about the class
    `about`, stands until the node is claimed or opened again; `note` is the newest.
    """

    node_key: str
    p: float
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
    """Return the next nodes of the list, surest first; `backwards` those before, nearest first."""
    sides = {"no": (False,), "yes": (True,), "any": (False, True)}[wanted.known]
    nodes = [
        node
        for side in sides
        for node in _nodes(queries, _query(queries, wanted, side, rows, backwards))
    ]
    return sorted(nodes, key=lambda node: (node.p, node.node_key), reverse=not backwards)[:rows]


def whole_worklist(queries: ProjectQueries, wanted: WorklistFilter) -> Iterator[WorklistNode]:
    """Yield all nodes of the list, surest first."""
    while block := read_worklist(queries, wanted, CSV_BLOCK):
        yield from block
        wanted = replace(wanted, after=(block[-1].p, block[-1].node_key))


def count_worklist(queries: ProjectQueries, wanted: WorklistFilter, most: int) -> int:
    """Return how many nodes the whole list has; counting ends at `most`."""
    every = replace(wanted, after=None)
    sides = {"no": (False,), "yes": (True,), "any": (False, True)}[wanted.known]
    return sum(
        int(queries.scalar(select(func.count()).select_from(_page(queries, every, side, most))))
        for side in sides
    )


def beside_on_list(
    queries: ProjectQueries, wanted: WorklistFilter, p: float, node_key: str
) -> tuple[str | None, str | None]:
    """Return the keys of the nodes before and after a place in the list; None at its ends."""
    here = replace(wanted, after=(p, node_key))
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
    chosen += _bounds(wanted)
    chosen += _run_bounds(queries, wanted)
    chosen += _membership(wanted)
    order = (here.p, here.node_key) if backwards else (here.p.desc(), here.node_key.desc())
    page = select(here.node_key, here.p, here.seq, here.size, here.degree).where(*chosen)
    return page.order_by(*order).limit(rows).subquery()


def _query(
    queries: ProjectQueries,
    wanted: WorklistFilter,
    known: bool,
    rows: int,
    backwards: bool = False,
) -> Select[Any]:
    """The rows of one stretch of the index with what stands in other tables."""
    page = _page(queries, wanted, known, rows, backwards)
    of_node = (prediction.c.project == queries.project) & (prediction.c.node_key == page.c.node_key)
    of_run = (run.c.project == queries.project) & (run.c.seq == page.c.seq)
    newest = (mark.c.project == queries.project) & (
        mark.c.n == newest_mark(page.c.node_key, queries.project)
    )
    return (
        select(
            page, prediction.c.label, run.c.decided_ns, mark.c.action, holder(mark), mark.c.at_ns,
            mark.c.outcome, mark.c.about, newest_note(page.c.node_key, queries.project),
        )
        .join(prediction, of_node)
        .join(run, of_run)
        .outerjoin(mark, newest)
    )  # fmt: skip


def _bounds(wanted: WorklistFilter) -> list[ColumnElement[bool]]:
    bounds = (
        (wanted.min_p, worklist_entry.c.p, "above"),
        (wanted.min_size, worklist_entry.c.size, "from"),
        (wanted.max_size, worklist_entry.c.size, "to"),
        (wanted.min_degree, worklist_entry.c.degree, "from"),
        (wanted.max_degree, worklist_entry.c.degree, "to"),
        (wanted.run, worklist_entry.c.seq, "is"),
    )
    compare = {
        "above": lambda column, value: column > value,
        "from": lambda column, value: column >= value,
        "to": lambda column, value: column <= value,
        "is": lambda column, value: column == value,
    }
    return [compare[how](column, value) for value, column, how in bounds if value is not None]


def _run_bounds(queries: ProjectQueries, wanted: WorklistFilter) -> list[ColumnElement[bool]]:
    """Times as numbers of runs, which the index has: runs are decided one after the other."""
    bounds: list[ColumnElement[bool]] = []
    in_project = run.c.project == queries.project
    if wanted.from_ns is not None:
        first = select(func.min(run.c.seq)).where(in_project, run.c.decided_ns >= wanted.from_ns)
        bounds.append(worklist_entry.c.seq >= func.coalesce(first.scalar_subquery(), 2**62))
    if wanted.until_ns is not None:
        last = select(func.max(run.c.seq)).where(in_project, run.c.decided_ns < wanted.until_ns)
        bounds.append(worklist_entry.c.seq <= func.coalesce(last.scalar_subquery(), -1))
    return bounds


def _membership(wanted: WorklistFilter) -> list[ColumnElement[bool]]:
    """Conditions on other tables: a node that left, its group, and what people did with it."""
    gone = select(prediction.c.node_key).where(
        prediction.c.project == worklist_entry.c.project,
        prediction.c.node_key == worklist_entry.c.node_key,
        prediction.c.in_graph.is_(False),
    )
    conditions: list[ColumnElement[bool]] = [~gone.exists()]
    if wanted.group is not None:
        in_group = select(grouping.c.node_key).where(
            grouping.c.project == worklist_entry.c.project,
            grouping.c.node_key == worklist_entry.c.node_key,
            grouping.c.property == wanted.group,
            grouping.c.value == (wanted.value or ""),
        )
        conditions.append(in_group.exists())
    if wanted.state != "any":
        conditions.append(in_state(wanted.state, worklist_entry))
    if wanted.by is not None:
        conditions.append(_newest(holder, worklist_entry) == wanted.by)
    return conditions


def in_state(state: State, nodes: Table) -> ColumnElement[bool]:
    """Condition on what people did with the nodes of a table; `state` is not `any`."""
    newest = _newest(lambda each: each.c.action, nodes)
    if state == "claimed":
        return newest == "claim"
    if state == "done":
        return newest == "done"
    if state in OUTCOMES:
        return _newest(lambda each: each.c.outcome, nodes) == state
    free = or_(newest.is_(None), newest.in_(("release", "reopen")))
    return free if state == "free" else or_(newest.is_(None), newest != "done")


def _newest(value_of: Callable[[Any], Any], nodes: Table) -> ScalarSelect[Any]:
    """A value of the newest mark, notes aside, of each node of a table."""
    each = mark.alias()
    return (
        select(value_of(each))
        .where(
            each.c.project == nodes.c.project,
            each.c.node_key == nodes.c.node_key,
            each.c.action != "note",
        )
        .order_by(each.c.n.desc())
        .limit(1)
        .scalar_subquery()
    )


def holder(marks: Any) -> Any:
    """Whose mark it is: the assignee's, or of who made it."""
    return func.coalesce(marks.c.assignee, marks.c.who).label("who")


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


def _nodes(queries: ProjectQueries, query: Select[Any]) -> list[WorklistNode]:
    return [_node(row) for row in queries.rows(query)]


def _node(row: Mapping[str, Any]) -> WorklistNode:
    return WorklistNode(
        row["node_key"], row["p"], row["seq"], row["decided_ns"], row["size"], row["degree"],
        row["label"], state_of(row["action"]), row["who"], row["at_ns"], row["outcome"],
        row["about"], row["note"],
    )  # fmt: skip


def state_of(action: str | None) -> str:
    """Return what a node's newest mark says: free, claimed or done."""
    return {"claim": "claimed", "done": "done"}.get(action or "", "free")
