"""`ringfence explain KEY` over an open project."""

from __future__ import annotations

from ringfence.connector.errors import ConfigError
from ringfence.jobs.explain import Explanation, explain
from ringfence.jobs.looking import Look
from ringfence.jobs.workspace import Workspace


def run_explain(workspace: Workspace, key: str) -> Explanation:
    """Return what is known of a node, with its neighbours from the graph."""
    workspace.require_migrated()
    look = Look(workspace.store, workspace.project)
    found = explain(look, key, workspace.graph, workspace.mapping)
    if found is None:
        raise ConfigError(
            found=f"no node with the key {key!r} was evaluated in project {workspace.project!r}",
            needed="the key of a node that has a set; s:12 for the text 12, i:12 for the number",
            next_step="ringfence query 'MATCH (n)-[:EVALUATED]->() RETURN n LIMIT 5'",
        )
    return found
