"""What became of the nodes that a worklist held: how many were right, how many of a class missed.

Counted on the newest runs alone, as many as have at most `MAX_COUNTED_NODES` nodes together: a
store of a million predictions answers like one of a thousand. A run of which only the classes of
listed nodes, or early ones, are known does not count: people looked at the suspects first. While
all runs are such, the nodes of the audit sample count, which nobody chose.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import case, func, select

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.tables import prediction, run, worklist_entry
from ringfence.connector.store.worklist.list_counts import early_runs
from ringfence.connector.store.worklist.sampled_nodes import IS_SAMPLED

MAX_COUNTED_NODES = 20_000
MAX_RUNS = 1_000


@dataclass(frozen=True, slots=True)
class KnownOutcomes:
    """Of the newest `runs`: nodes of known class on the list and those of the class, and all.

    `in_sample` if only nodes of the audit sample count. `listed` had the class in their set,
    `right` of them are of it, `of_class` nodes are of it.
    """

    runs: int
    listed: int
    right: int
    of_class: int
    in_sample: bool = False

    @property
    def right_share(self) -> float | None:
        """Share of the listed nodes that were right."""
        return self.right / self.listed if self.listed else None

    @property
    def missed_share(self) -> float | None:
        """Share of the nodes of the class whose set did not hold it."""
        return 1 - self.right / self.of_class if self.of_class else None


def known_outcomes(queries: ProjectQueries, class_: str) -> KnownOutcomes:
    """Return what became of nodes of the newest settled runs, else of the audit sample."""
    with queries.store.reading() as connection:
        early = early_runs(connection, queries.project)
    runs = _newest_runs(queries, early)
    if runs:
        return _count(queries, class_, runs, early)
    runs = _newest_runs(queries, frozenset())
    if runs:
        return _count(queries, class_, runs, frozenset(), in_sample=True)
    return KnownOutcomes(0, 0, 0, 0)


def _count(
    queries: ProjectQueries,
    class_: str,
    runs: Sequence[int],
    early: Collection[int],
    *,
    in_sample: bool = False,
) -> KnownOutcomes:
    entry, of_node = worklist_entry.c, prediction.c
    between = sorted(seq for seq in early if runs[-1] < seq < runs[0])
    recent = (
        of_node.project == queries.project,
        of_node.seq.between(runs[-1], runs[0]),
        of_node.seq.not_in(between),
        of_node.label.is_not(None),
        *([IS_SAMPLED] if in_sample else []),
    )
    of_class = queries.scalar(select(func.count()).where(*recent, of_node.label == class_))
    held = queries.rows(
        select(
            func.count().label("listed"),
            func.sum(case((of_node.label == class_, 1), else_=0)).label("correct"),
        )
        .select_from(prediction)
        .join(
            worklist_entry,
            (entry.project == of_node.project) & (entry.node_key == of_node.node_key),
        )
        .where(*recent, entry["class"] == class_)
    )[0]
    listed, right = held["listed"], int(held["correct"] or 0)
    return KnownOutcomes(len(runs), listed, right, int(of_class), in_sample)


def _newest_runs(queries: ProjectQueries, without: Collection[int]) -> list[int]:
    """Numbers of the newest runs that have so many nodes together at most; one at least."""
    newest = (
        select(run.c.seq, run.c.n_evaluated)
        .where(run.c.project == queries.project)
        .order_by(run.c.seq.desc())
        .limit(MAX_RUNS)
    )
    chosen: list[int] = []
    nodes = 0
    for row in queries.rows(newest):
        if row["seq"] in without:
            continue
        nodes += row["n_evaluated"]
        if chosen and nodes > MAX_COUNTED_NODES:
            break
        chosen.append(row["seq"])
    return chosen
