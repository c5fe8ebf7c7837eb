"""Which rights the user lacks in Neo4j, and what that costs; Community Edition has no roles."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.neo4j.access.rights import MIGRATE, SHOW_TRANSACTION, WORK
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.migrate import is_new
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding

A_ROLE = "TO <a role of the user>"


def check_rights(graph: Graph, settings: Settings) -> Iterator[Finding]:
    """Name each missing right with the statement that grants it; nothing where none is missing."""
    needed = (*WORK, *MIGRATE) if is_new(graph) else WORK
    for grant in graph.rights.missing(graph.database, needed):
        yield Finding("error", f"the user of Neo4j lacks a right: {grant}", f"{grant} {A_ROLE}")
    if graph.rights.sees_all_transactions(graph.database):
        return
    seconds = settings.engine.unseen_transaction_seconds
    may = "does not say whether" if graph.rights.listed is None else "says that"
    not_ = "" if graph.rights.listed is None else "not "
    yield Finding(
        "warning",
        f"Neo4j {may} the user may {not_}see the open transactions of others: the watermark stays "
        f"{seconds:g} s behind the server's clock, and what commits later than that is found by "
        "counts alone",
        f"GRANT {SHOW_TRANSACTION.grant.format(f'`{graph.database}`')} {A_ROLE}, or [engine] "
        "unseen_transaction_seconds above the longest write transaction there",
    )
