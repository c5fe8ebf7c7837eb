"""Databases of a server: the home one by default, and what is said where another name is given."""

import pytest

from ringfence.connector.errors import GraphError, ServerError
from ringfence.connector.neo4j.access.databases import (
    DATABASES,
    IDENTITY,
    DatabaseIdentity,
    list_databases,
)
from ringfence.connector.neo4j.bolt import Neo4jError
from ringfence.connector.neo4j.driver import connect, explained
from tests.faults.stand_in import StandIn


def test_an_empty_name_is_the_users_home_database(graph):
    opened = connect(graph.uri, *graph.auth, database="")
    try:
        assert opened.database == "neo4j"
        assert opened.identity == DatabaseIdentity(opened.identity.id, "neo4j")
        assert len(opened.identity.id) > 20
        assert [row.name for row in list_databases(opened.driver)] == ["neo4j"]
    finally:
        opened.close()


def test_a_name_that_is_not_there_is_answered_with_those_that_are(graph):
    with pytest.raises(ServerError) as refused:
        connect(graph.uri, *graph.auth, database="shop")
    assert "has no database 'shop'; databases that the user may see there: neo4j" in str(
        refused.value
    )
    assert "export RINGFENCE_NEO4J_DATABASE=neo4j" in refused.value.next_step


def test_the_identity_stays_and_is_not_that_of_another_database(graph, connected):
    again = connect(graph.uri, *graph.auth)
    system = connect(graph.uri, *graph.auth, database="system")
    try:
        assert again.identity == connected.identity
        assert system.identity.id != connected.identity.id
    finally:
        again.close()
        system.close()


@pytest.fixture
def stand_in(graph):
    proxy = StandIn(int(graph.uri.rpartition(":")[2]))
    yield proxy
    proxy.close()


OFFLINE = "Neo.TransientError.General.DatabaseUnavailable"


def test_a_database_that_is_offline_is_named_with_those_that_are_not(stand_in, graph):
    """Community Edition can't stop a database: the answer is that of a server that can."""
    stand_in.refusals[IDENTITY] = (OFFLINE, "Database 'neo4j' is unavailable.")
    assert "requestedStatus AS status" in DATABASES
    stand_in.queries[DATABASES] = DATABASES.replace(
        "requestedStatus AS status", "'offline' AS status"
    )
    with pytest.raises(ServerError) as refused:
        connect(f"bolt://127.0.0.1:{stand_in.port}", *graph.auth)
    assert "the database neo4j of" in refused.value.found
    assert "is offline; databases that the user may see there: neo4j (offline)" in (
        refused.value.found
    )
    assert "online" in refused.value.needed


HOME_IS = """
SHOW DATABASES YIELD name, type WHERE type <> 'system'
RETURN DISTINCT 'shop' AS name, '{}' AS status, {} AS home
"""


def test_a_home_database_that_is_offline_is_not_taken_for_neo4j(stand_in, graph):
    stand_in.refusals[IDENTITY] = (OFFLINE, "Database 'shop' is unavailable.")
    stand_in.queries[DATABASES] = HOME_IS.format("offline", "true")
    with pytest.raises(ServerError) as refused:
        connect(f"bolt://127.0.0.1:{stand_in.port}", *graph.auth, database="")
    assert "the database shop, the user's home database, of bolt:" in refused.value.found
    assert "is offline; databases that the user may see there: shop (offline)" in (
        refused.value.found
    )


def test_a_home_database_that_is_only_starting_has_its_name(stand_in, graph):
    """The control of the one that is offline."""
    stand_in.refusals[IDENTITY] = (OFFLINE, "Database 'shop' is unavailable.")
    stand_in.queries[DATABASES] = HOME_IS.format("online", "true")
    opened = connect(f"bolt://127.0.0.1:{stand_in.port}", *graph.auth, database="")
    assert opened.database == "shop"
    opened.close()


@pytest.mark.parametrize("code", [OFFLINE, "Neo.ClientError.Security.Forbidden"])
def test_a_home_database_that_the_server_does_not_tell_is_asked_for(stand_in, graph, code):
    stand_in.refusals[IDENTITY] = (code, "no")
    stand_in.queries[DATABASES] = HOME_IS.format("online", "false")
    with pytest.raises(ServerError) as refused:
        connect(f"bolt://127.0.0.1:{stand_in.port}", *graph.auth, database="")
    assert "does not say which is the user's home database" in refused.value.found
    assert "export RINGFENCE_NEO4J_DATABASE=NAME" in refused.value.next_step


def test_a_database_that_is_only_starting_is_left_to_the_first_query(stand_in, graph):
    stand_in.refusals[IDENTITY] = (OFFLINE, "Database 'neo4j' is unavailable.")
    opened = connect(f"bolt://127.0.0.1:{stand_in.port}", *graph.auth)
    stand_in.refusals.clear()
    assert opened.database == "neo4j"
    assert opened.read("RETURN 1 AS one")[0]["one"] == 1
    opened.close()


def test_a_user_who_may_not_enter_the_database_is_told_the_grant(stand_in, graph):
    stand_in.refusals[IDENTITY] = stand_in.refusals["RETURN 1"] = (
        "Database access is not allowed for user 'sven' with roles [PUBLIC]."
    )
    opened = connect(f"bolt://127.0.0.1:{stand_in.port}", *graph.auth)
    assert opened.identity is None
    with pytest.raises(GraphError) as refused:
        opened.read("RETURN 1 AS one")
    assert refused.value.next_step.startswith("GRANT ACCESS ON DATABASE <the database> TO <a role")
    assert "sven" not in str(refused.value)
    opened.close()


def test_a_missing_right_is_named_as_one():
    """Neo4j Community has no rights to take away: the driver's own error stands for a server's."""
    error = Neo4jError._hydrate_neo4j(code="Neo.ClientError.Security.Forbidden", message="no")
    with pytest.raises(GraphError) as refused, explained("bolt://localhost"):
        raise error
    assert "the user has no right to it" in refused.value.found
    assert "docs/operations.md" in refused.value.needed
