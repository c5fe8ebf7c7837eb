"""What came since a moment: nodes, lists, alarms, versions in use, and what people did."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import func, select

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tables import alarm_event, mark, run

MAX_LISTED_RUNS = 2_000  # whose lists are counted; the newest ones


@dataclass(frozen=True, slots=True)
class News:
    """Counts of what is on record since a moment; `listed` are nodes by the list's name."""

    since_ns: int
    runs: int
    nodes: int
    alarms: int
    promotions: int
    rollbacks: int
    marked: int
    listed: Mapping[str, int] = field(default_factory=dict)


def read_news(queries: ProjectQueries, since_ns: int) -> News:
    """Return what came after a moment, from the rows of runs, events and marks."""
    runs = (run.c.project == queries.project, run.c.decided_ns > since_ns)
    counted = queries.rows(
        select(func.count().label("runs"), func.sum(run.c.n_evaluated).label("nodes")).where(*runs)
    )[0]
    fired = (
        alarm_event.c.project == queries.project,
        alarm_event.c.at_ns > since_ns,
        alarm_event.c.state == "firing",
    )
    done = (mark.c.project == queries.project, mark.c.at_ns > since_ns, mark.c.action == "done")
    changes = [
        change
        for change in queries.activations()
        if change.at_ns > since_ns and change.was is not None
    ]
    back = sum(change.how == "rolled back" for change in changes)
    return News(
        since_ns,
        int(counted["runs"]),
        int(counted["nodes"] or 0),
        int(queries.scalar(select(func.count()).where(*fired))),
        len(changes) - back,
        back,
        int(queries.scalar(select(func.count(mark.c.node_key.distinct())).where(*done))),
        _count_listed(queries, since_ns),
    )


def _count_listed(queries: ProjectQueries, since_ns: int) -> dict[str, int]:
    decided = (
        select(run.c.lists)
        .where(
            run.c.project == queries.project,
            run.c.decided_ns > since_ns,
            run.c.lists.is_not(None),
        )
        .order_by(run.c.seq.desc())
        .limit(MAX_LISTED_RUNS)
    )
    listed: Counter[str] = Counter()
    for row in queries.rows(decided):
        for facts in json.loads(row["lists"]):
            listed[facts["name"]] += facts["listed"]
    return dict(sorted(listed.items()))
