"""A project stays on the graph database that it was migrated on."""

from __future__ import annotations

from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.write.fence import fence_token, read_anchor
from ringfence.connector.neo4j.write.prediction_sets import has_run
from ringfence.connector.store import runs
from ringfence.connector.store.engine import Store
from ringfence.connector.store.graph.database import (
    RecordedDatabase,
    read_database,
    record_database,
)

__all__ = ["remembers_project", "require_same_database", "settle_database"]


def require_same_database(graph: Graph, store: Store, project: str) -> None:
    """Raise `GraphError` where another database answers than the one on record.

    Where no id can be compared, because none is on record yet or the user may not ask for it, a
    graph that shows nothing of the project's runs is another one.
    """
    recorded, identity = read_database(store, project), graph.identity
    if recorded is None or identity is None:
        _require_known_project(graph, store, project)
        return
    if recorded.id == identity.id:
        return
    raise GraphError(
        found=f"{graph.uri} answers with the database {identity.name} (id {identity.id[:12]}); the "
        f"project {project} belongs to the database {recorded.name} (id {recorded.id[:12]})",
        needed=f"[neo4j] uri and database of {recorded.name}: sets of one database mean nothing in "
        "another",
        next_step="correct [neo4j]; if the same graph was restored into a new database: "
        "ringfence migrate --new-database",
    )


def settle_database(graph: Graph, store: Store, project: str, *, accept_new: bool) -> list[str]:
    """Record the database that answers, if none is on record or another is accepted; say so."""
    if not accept_new:
        require_same_database(graph, store, project)
    recorded, identity = read_database(store, project), graph.identity
    if identity is None or (recorded is not None and recorded.id == identity.id):
        return []
    record_database(store, project, RecordedDatabase(identity.id, identity.name))
    return [f"graph database {identity.name} is the project's"]


def remembers_project(graph: Graph, project: str) -> bool:
    """Whether the graph was ever written for this project."""
    return fence_token(graph, project) > 0 or read_anchor(graph, project) is not None


def _require_known_project(graph: Graph, store: Store, project: str) -> None:
    applied = runs.newest_applied(store, project)
    if applied is None or remembers_project(graph, project) or has_run(graph, project, applied):
        return
    raise GraphError(
        found=f"the project {project} has {applied} runs on record, and the database "
        f"{graph.database} of {graph.uri} shows nothing of them: it is another one",
        needed="[neo4j] uri and database of the graph that was scored; is the address from "
        "NEO4J_URI, and another application's?",
        next_step="write [neo4j] uri into the file; if the graph was emptied or restored without "
        "its runs: ringfence migrate --new-database",
    )
