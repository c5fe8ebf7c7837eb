"""The audit sample for people: the nodes whose class someone should find out.

The list says which node it is and nothing of its set: whoever finds out a class should not know
what the model thinks of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select, tuple_

from ringfence.connector.keys import decode_key
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import PAGE_ROWS, newest_mark, state_of
from ringfence.connector.store.queries.worklist_filter import (
    Known,
    State,
    holder,
    in_state,
    known_of,
)
from ringfence.connector.store.tables import mark, prediction, run
from ringfence.connector.store.worklist.sampled_nodes import IS_SAMPLED


@dataclass(frozen=True, slots=True)
class SampleFilter:
    """Which sampled nodes to list; `after` is run and key of the last row of the page before."""

    known: Known = "no"
    state: State = "open"
    run: int | None = None
    after: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class SampledNode:
    """A node of the audit sample; `state` and `who` are of the newest claim or end."""

    node_key: str
    seq: int
    decided_ns: int
    label: str | None
    state: str
    who: str | None

    @property
    def key(self) -> str:
        """The key as people write it."""
        return str(decode_key(self.node_key))


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """How many nodes runs drew for the audit sample, and of how many the class is known."""

    nodes: int
    known: int

    @property
    def unknown(self) -> int:
        """How many classes somebody still has to find out."""
        return self.nodes - self.known


def read_sample(
    queries: ProjectQueries, wanted: SampleFilter, rows: int | None = PAGE_ROWS
) -> list[SampledNode]:
    """Return the next nodes of the sample, those that wait longest first; all without `rows`."""
    query = _query(queries, wanted).order_by(prediction.c.seq, prediction.c.node_key)
    return [_node(row) for row in queries.rows(query if rows is None else query.limit(rows))]


def count_sample(queries: ProjectQueries) -> SampleCounts:
    """Return how many nodes were drawn and are known so far."""
    counted = select(
        func.count().label("nodes"), func.count(prediction.c.label).label("known")
    ).where(prediction.c.project == queries.project, IS_SAMPLED)
    row = queries.rows(counted)[0]
    return SampleCounts(int(row["nodes"]), int(row["known"]))


def _query(queries: ProjectQueries, wanted: SampleFilter) -> Select[Any]:
    here = prediction.c
    chosen = [here.project == queries.project, IS_SAMPLED, *known_of(wanted.known)]
    if wanted.run is not None:
        chosen.append(here.seq == wanted.run)
    if wanted.after is not None:
        chosen.append(tuple_(here.seq, here.node_key) > tuple_(*wanted.after))
    if wanted.state != "any":
        chosen.append(in_state(wanted.state, prediction))
    of_run = (run.c.project == here.project) & (run.c.seq == here.seq)
    newest = (mark.c.project == queries.project) & (
        mark.c.n == newest_mark(here.node_key, queries.project)
    )
    return (
        select(here.node_key, here.seq, here.label, run.c.decided_ns, mark.c.action, holder(mark))
        .join(run, of_run)
        .outerjoin(mark, newest)
        .where(*chosen)
    )


def _node(row: Mapping[str, Any]) -> SampledNode:
    return SampledNode(
        row["node_key"],
        row["seq"],
        row["decided_ns"],
        row["label"],
        state_of(row["action"]),
        row["who"],
    )
