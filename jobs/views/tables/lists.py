"""Lists of `[[lists]]`: what they promised and what share of their nodes turned out wrong."""

from __future__ import annotations

from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.jobs.auditing.list_audit import audit_lists
from ringfence.jobs.views.tables.model import Column, Rows, TableView


def _rows(queries: ProjectQueries) -> Rows:
    rows = audit_lists(queries.store, queries.project)
    slices = {"total": "all runs", "window": "last 90 days", "run": "last run",
              "sample": "audit sample"}  # fmt: skip
    return [
        row.as_json()
        | {
            "over": slices[row.slice],
            "holds": f"{'not ' if row.terms.is_clear else ''}{row.terms.class_}",
        }
        for row in rows
    ]


LISTS = TableView(
    "lists",
    "Lists and their promises",
    (
        Column("list", "name", "text", "Its name in the configuration."),
        Column("holds", "holds", "text", "What its nodes are said to be."),
        Column("may be wrong", "may_be_wrong", "percent", "The promised share."),
        Column(
            "per",
            "per",
            "text",
            "The list of each run, or all nodes of the stream together.",
            extra=True,
        ),
        Column("over", "over", "text", "All runs, those of the last 90 days, or the last one."),
        Column("run", "seq", "run", "The last run that decided it.", extra=True),
        Column("runs", "runs", "int", "Runs that decided it.", extra=True),
        Column("empty", "empty", "int", "Runs in which it was empty.", extra=True),
        Column("nodes", "evaluated", "int", "Evaluated nodes of these runs.", extra=True),
        Column("listed", "listed", "int", "Nodes on it."),
        Column("known", "known", "int", "Listed nodes whose class is known.", extra=True),
        Column("wrong", "false", "int", "Of these, how many are wrong.", extra=True),
        Column("mean of runs", "mean_of_runs", "percent", "What `run` promises."),
        Column("all together", "pooled", "percent", "What `stream` promises."),
        Column("at least", "low", "percent", "All unknown nodes counted as right.", extra=True),
        Column("at most", "high", "percent", "All unknown nodes counted as wrong.", extra=True),
        Column("verdict", "verdict", "verdict", "By the law of what is promised."),
        Column("p", "p_value", "p", "Of so many wrong nodes when all is well.", extra=True),
        Column(
            "status",
            "status",
            "text",
            "What stands behind it: theorem or measurements.",
            extra=True,
        ),
    ),
    _rows,
    "No lists. Add a [[lists]] table to the configuration: later runs decide it.",
)
