"""`ringfence migrate`: both stores to this code's version.

A migration holds the project's lease like every command that writes, so that no run is in between
when tables and constraints change. The lease is a row of the SQL store: before the very first
migration there is none to take, nor anyone who could hold one, so the tables are made first. Its
columns are those of the first version; a migration that changes them must be written with care.

An audit store older than the graph is refused here too. Runs that a crash left decided are not
finished, and the chain is not anchored: both need the chain's key. A migration decides nothing and
needs no key, and on a machine that only migrates it must not make a second one.
"""

from __future__ import annotations

from ringfence.connector.neo4j.migrate import create_user_indexes, migrate_graph
from ringfence.connector.store.migrate import has_tables, migrate_sql
from ringfence.jobs.project.same_database import settle_database
from ringfence.jobs.project.session import lease_session
from ringfence.jobs.project.workspace import Workspace


def run_migrations(workspace: Workspace, *, new_database: bool = False) -> list[str]:
    """Apply what is missing and return what was done; an empty list if all was in place.

    Another database than the project's is refused, unless `new_database` accepts it.
    """
    done = [] if has_tables(workspace.store) else migrate_sql(workspace.store)
    with lease_session(workspace):
        done += migrate_sql(workspace.store)
        done += settle_database(
            workspace.graph, workspace.store, workspace.project, accept_new=new_database
        )
        done += migrate_graph(workspace.graph)
        if workspace.settings.graph.manage_indexes:
            done += create_user_indexes(workspace.graph, workspace.mapping)
    return done
