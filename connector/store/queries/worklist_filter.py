"""The filter of the worklist, and its conditions on the tables that nodes stand in.

The same conditions hold for `worklist_entry`, which has a row per class in a set, and for
`prediction`, which has a row per node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, ScalarSelect, Table, and_, func, or_, select

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tables import grouping, mark, prediction, run
from ringfence.connector.store.worklist.marks import OUTCOMES

NO_LIST = ""
"""As `list_`: the nodes on no list. Lists have names, which are never empty."""
MAX_INCARNATION_DIGITS = 4
Place = tuple[float, str] | tuple[int, float, str]
"""Where a page ended: p and key; on a list the run, what it is sorted by there, and the key."""
Known = Literal["no", "yes", "any"]
State = Literal["open", "free", "claimed", "done", "confirmed", "false alarm", "undecided", "any"]


@dataclass(frozen=True, slots=True)
class WorklistFilter:
    """Which nodes to list: those with `class_` in their set, and further conditions.

    With `list_` it is those that runs put on this list, whatever their set holds, but for the runs
    `not_runs`, whose list of the name was about something else; `NO_LIST` means those on no list.
    `key` is how their keys begin. `state` is what people did with a node: `free` not claimed,
    `claimed` by someone, `done` finished, `open` free or claimed; an outcome is one of the
    finished. `by` is who has claimed or finished it. `after` is the last row of the page before.
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
    key: str | None = None
    list_: str | None = None
    not_runs: tuple[int, ...] = ()
    after: Place | None = None


def bounds_of(
    queries: ProjectQueries, wanted: WorklistFilter, nodes: Table
) -> list[ColumnElement[bool]]:
    """Conditions on the size, degree, run and key of the nodes of a table."""
    here = nodes.c
    bounds = (
        (wanted.min_size, lambda value: here.size >= value),
        (wanted.max_size, lambda value: here.size <= value),
        (wanted.min_degree, lambda value: here.degree >= value),
        (wanted.max_degree, lambda value: here.degree <= value),
        (wanted.run, lambda value: here.seq == value),
        (wanted.key, lambda value: _begins_with(here.node_key, value)),
    )
    conditions = [condition(value) for value, condition in bounds if value is not None]
    return [*conditions, *_run_bounds(queries, wanted, nodes)]


def _begins_with(node_key: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Condition that a key begins with a text, as people write it; LIKE would ignore its case.

    Records of later nodes of a key have their number and `@` before it.
    """
    starts = []
    for kind in "sif":
        typed = f"{kind}:{text}"
        starts.append(func.substr(node_key, 1, len(typed)) == typed)
        numbered = func.substr(node_key, 1, 1).between("0", "9")
        for digits in range(1, MAX_INCARNATION_DIGITS + 1):
            after = func.substr(node_key, digits + 1, len(typed) + 1) == f"@{typed}"
            starts.append(and_(numbered, after))
    return or_(*starts)


def _run_bounds(
    queries: ProjectQueries, wanted: WorklistFilter, nodes: Table
) -> list[ColumnElement[bool]]:
    """Times as numbers of runs, which the index has: runs are decided one after the other."""
    bounds: list[ColumnElement[bool]] = []
    in_project = run.c.project == queries.project
    if wanted.from_ns is not None:
        first = select(func.min(run.c.seq)).where(in_project, run.c.decided_ns >= wanted.from_ns)
        bounds.append(nodes.c.seq >= func.coalesce(first.scalar_subquery(), 2**62))
    if wanted.until_ns is not None:
        last = select(func.max(run.c.seq)).where(in_project, run.c.decided_ns < wanted.until_ns)
        bounds.append(nodes.c.seq <= func.coalesce(last.scalar_subquery(), -1))
    return bounds


def known_of(known: Known) -> list[ColumnElement[bool]]:
    """Condition on predictions: whether the class of their node is known."""
    if known == "any":
        return []
    label = prediction.c.label
    return [label.is_not(None) if known == "yes" else label.is_(None)]


def membership_of(wanted: WorklistFilter, nodes: Table) -> list[ColumnElement[bool]]:
    """Conditions on other tables: the group of a table's nodes, and what people did with them."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.group is not None:
        in_group = select(grouping.c.node_key).where(
            grouping.c.project == nodes.c.project,
            grouping.c.node_key == nodes.c.node_key,
            grouping.c.property == wanted.group,
            grouping.c.value == (wanted.value or ""),
        )
        conditions.append(in_group.exists())
    if wanted.state != "any":
        conditions.append(in_state(wanted.state, nodes))
    if wanted.by is not None:
        conditions.append(_newest(holder, nodes) == wanted.by)
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
