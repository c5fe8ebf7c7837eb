"""What speaks against the promise behind a set: broken promises and alarms that are firing.

A set was made under a promise. Where known classes show that it is not kept, for all nodes, for a
class or for the node's group, the sentence about the set must not repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ringfence.connector.records import CoverageRow, Run
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.shown_sample import coverage_bounds, last_sample

PROMISE_ALARMS = (
    "coverage", "classes", "groups", "decline", "shortfall", "drift", "sample", "shift", "bias",
)  # fmt: skip
"""Rules whose alarm says that sets of the model in use may not hold what they promise."""

MAX_DOUBTS = 4
MAX_ALARM_CHARS = 300


def find_doubts(queries: ProjectQueries, run: Run, groups: Mapping[str, str]) -> tuple[str, ...]:
    """Return why the promise of a run's sets can't be relied on; empty where nothing says so.

    `groups` are the properties of the node by name: a broken promise of another group is not its.
    """
    rows = [*_of_sample(queries), *queries.totals(), *queries.own_promises()]
    broken = [describe_broken(row) for row in rows if _is_about(row, run, groups)]
    newest = queries.complete_runs(1)
    firing = [] if not newest or newest[-1].model != run.model else _firing(queries, broken)
    return tuple(dict.fromkeys([*broken, *firing]))[:MAX_DOUBTS]


def describe_broken(row: CoverageRow) -> str:
    """Say that a promise is broken, with what was promised and what is covered."""
    if row.slice == "sample":
        low, high = (100 * share for share in coverage_bounds(row))
        between = f"{low:.1f}" if row.known == row.evaluated else f"{low:.1f} to {high:.1f}"
        return (
            f"the promise of {100 * (1 - row.alpha):g} % is broken in the audit sample: {between} "
            f"% of {row.evaluated:,} nodes that nobody chose are covered"
        )
    whom = "all nodes" if row.slice == "total" else f"{row.slice} {row.name}"
    return (
        f"the promise of {100 * (1 - row.alpha):g} % to {whom} is broken: "
        f"{100 * (row.coverage or 0.0):.1f} % of {row.known:,} known nodes are covered"
    )


def _of_sample(queries: ProjectQueries) -> list[CoverageRow]:
    """The row of the audit sample that is shown; none where no run drew one."""
    with queries.store.reading() as connection:
        row = last_sample(connection, queries.project)
    return [] if row is None else [row]


def _is_about(row: CoverageRow, run: Run, groups: Mapping[str, str]) -> bool:
    if row.verdict != "broken" or row.model != run.model:
        return False
    if row.slice in {"total", "sample"}:
        return row.alpha == run.alpha
    if row.slice == "group":
        return row.name in {f"{name}={value}" for name, value in groups.items()}
    return True


def _firing(queries: ProjectQueries, broken: list[str]) -> list[str]:
    """Alarms about the promise that fire now, without those that broken rows have said already."""
    said = {"coverage", "classes", "groups", "sample"} if broken else set()
    return [
        f"the alarm {alarm.rule} is firing: {alarm.words[:MAX_ALARM_CHARS]}"
        for alarm in queries.alarms()
        if alarm.rule in PROMISE_ALARMS and alarm.rule not in said and alarm.state == "firing"
    ]
