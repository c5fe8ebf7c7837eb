"""`ringfence migrate`: both stores to this code's version."""

from __future__ import annotations

from ringfence.connector import migrate_graph, migrate_sql
from ringfence.jobs.workspace import Workspace


def run_migrations(workspace: Workspace) -> list[str]:
    """Apply what is missing and tell what was done; an empty list where all was in place."""
    done = migrate_sql.migrate_sql(workspace.store)
    done += migrate_graph.migrate_graph(workspace.graph)
    if workspace.settings.graph.manage_indexes:
        done += migrate_graph.create_user_indexes(workspace.graph, workspace.mapping)
    return done
