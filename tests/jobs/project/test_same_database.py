"""A project stays on the database that it was migrated on; another is refused with both names."""

import pytest

from ringfence.connector.errors import GraphError
from ringfence.connector.store.graph.database import (
    RecordedDatabase,
    read_database,
    record_database,
)
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations


@pytest.fixture
def fresh(settings):
    """A project that was never migrated."""
    with open_workspace(settings) as opened:
        yield opened


def test_a_migration_records_the_database_once(fresh):
    done = run_migrations(fresh)
    assert "graph database neo4j is the project's" in done
    recorded = read_database(fresh.store, fresh.project)
    assert recorded.id == fresh.graph.identity.id
    assert run_migrations(fresh) == []


def test_another_database_is_refused_with_both_names_until_it_is_accepted(fresh):
    run_migrations(fresh)
    other = RecordedDatabase("F" * 64, "aura1234")
    record_database(fresh.store, fresh.project, other)
    for work in (lambda: run_migrations(fresh), fresh.require_migrated, write):
        with pytest.raises(GraphError) as refused:
            work(fresh) if work is write else work()
        assert "the database neo4j (id " in refused.value.found
        assert "belongs to the database aura1234 (id FFFFFFFFFFFF)" in refused.value.found
        assert "ringfence migrate --new-database" in refused.value.next_step
    assert run_migrations(fresh, new_database=True) == ["graph database neo4j is the project's"]
    fresh.require_migrated()


def test_a_project_with_runs_is_not_taken_by_a_graph_that_shows_none_of_them(trained):
    """As with a store of an older version, beside the NEO4J_URI of another application."""
    workspace = trained.workspace
    run_scoring(workspace)
    with workspace.store.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM graph_database")
    workspace.require_migrated()  # the control: its own graph
    assert run_migrations(workspace) == ["graph database neo4j is the project's"]
    with workspace.store.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM graph_database")
    workspace.graph.run("MATCH (n:RingfenceFence) DETACH DELETE n")
    workspace.require_migrated()  # its runs are there still
    workspace.graph.run("MATCH (n:RingfenceRun) DETACH DELETE n")
    for work in (lambda: run_migrations(workspace), workspace.require_migrated):
        with pytest.raises(GraphError) as refused:
            work()
        assert "shows nothing of them: it is another one" in refused.value.found
        assert "NEO4J_URI" in refused.value.needed
    assert read_database(workspace.store, workspace.project) is None
    accepted = run_migrations(workspace, new_database=True)
    assert accepted == ["graph database neo4j is the project's"]
    workspace.require_migrated()


def test_where_the_user_may_not_ask_for_the_id_the_runs_tell(trained):
    workspace = trained.workspace
    run_scoring(workspace)
    workspace.graph.__dict__["identity"] = None  # as `Graph.identity` is without the right
    workspace.require_migrated()
    workspace.graph.run("MATCH (n:RingfenceFence|RingfenceRun) DETACH DELETE n")
    with pytest.raises(GraphError, match="shows nothing of them"):
        workspace.require_migrated()


def write(workspace):
    with write_session(workspace, lambda *_: None):
        pytest.fail("a session of another database's project began")


def test_a_project_of_an_older_version_has_none_on_record_and_works(fresh):
    run_migrations(fresh)
    with fresh.store.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM graph_database")
    fresh.require_migrated()
    assert run_migrations(fresh) == ["graph database neo4j is the project's"]
