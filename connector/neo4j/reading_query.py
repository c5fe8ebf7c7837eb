"""A query that a person typed, run only if it reads.

A READ session refuses writes to the graph, and nothing else: `TERMINATE TRANSACTIONS` ends other
people's work, and some procedures drop the server's caches or connections. The server's own plan
says what a statement would do, whatever its text looks like; it is asked for before the query runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.bolt import Record
from ringfence.connector.neo4j.driver import Graph

SHOWING = re.compile(r"(\s|//[^\n]*\n|/\*.*?\*/)*(cypher\s+\S+\s+)*show\b", re.I | re.S)
PROFILED = re.compile(r"^((\s|//[^\n]*\n|/\*.*?\*/)*(cypher\s+\S+\s+)*)profile\b", re.I | re.S)
PROCEDURE = "ProcedureCall"
COMMAND = "AdministrationCommand"
ENDING = "TerminateTransactions"
SERVER_KIND = "s"  # what the server calls statements about itself and its schema
READING_PROCEDURES = frozenset(
    {
        "dbms.components", "dbms.info", "dbms.listcapabilities", "dbms.listconfig",
        "dbms.listconnections", "dbms.queryjmx", "dbms.showcurrentuser", "tx.getmetadata",
        "dbms.routing.getroutingtable", "dbms.cluster.routing.getroutingtable",
    }
)  # fmt: skip
"""Procedures about the server that only read."""
CHANGING_PROCEDURES = frozenset(
    {
        "db.prepareforreplanning", "db.resampleindex", "db.resampleoutdatedindexes",
        "db.stats.clear", "db.stats.collect", "db.stats.stop",
    }
)  # fmt: skip
"""Procedures that the server counts as reading though they change caches or statistics."""


def run_reading_query(graph: Graph, cypher: str) -> list[Record]:
    """Return all rows of a reading query; a `GraphError` for one that would do something else."""
    summary = graph.explain(PROFILED.sub(r"\1", cypher))
    refusal = find_refusal(cypher, summary.query_type or "", summary.plan or {})
    if refusal:
        raise GraphError(
            found=f"{refusal} is no reading query",
            needed="a query that changes neither the graph nor the server",
            next_step="run it with your own client, under a user that may do this",
        )
    return graph.read(cypher)


def find_refusal(cypher: str, kind: str, plan: Mapping[str, Any]) -> str | None:
    """Return what in a plan does more than read; None where nothing does.

    A plan that writes to the graph is left to the READ session, which refuses it.

    >>> find_refusal("TERMINATE TRANSACTIONS 'a'", "r", {"operatorType": "TerminateTransactions@x"})
    'TERMINATE TRANSACTIONS'
    >>> find_refusal("MATCH (n) RETURN n", "r", {"operatorType": "AllNodesScan@x"}) is None
    True
    """
    for operator, details in _operators(plan):
        if operator == ENDING:
            return "TERMINATE TRANSACTIONS"
        name = details.partition("(")[0].strip().strip("`")
        if operator == PROCEDURE and _changes_server(name, kind):
            return f"CALL {name}"
        if operator == COMMAND and not SHOWING.match(cypher):
            return "an administration command"
    return None


def _changes_server(name: str, kind: str) -> bool:
    lowered = name.lower()
    if kind == SERVER_KIND:
        return lowered not in READING_PROCEDURES
    return lowered in CHANGING_PROCEDURES


def _operators(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of a plan's operators with their details."""
    if plan:
        operator = str(plan.get("operatorType", "")).partition("@")[0]
        yield operator, str(plan.get("args", {}).get("Details", ""))
        for child in plan.get("children", ()):
            yield from _operators(child)
