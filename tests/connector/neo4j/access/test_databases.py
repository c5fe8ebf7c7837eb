"""Databases of a server: the home one by default, and what is said where another name is given."""

import pytest

from ringfence.connector.errors import GraphError, ServerError
from ringfence.connector.neo4j.access.databases import DatabaseIdentity, list_databases
from ringfence.connector.neo4j.bolt import Neo4jError
from ringfence.connector.neo4j.driver import connect, explained


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


def test_a_missing_right_is_named_as_one():
    """Neo4j Community has no rights to take away: the driver's own error stands for a server's."""
    error = Neo4jError._hydrate_neo4j(code="Neo.ClientError.Security.Forbidden", message="no")
    with pytest.raises(GraphError) as refused, explained("bolt://localhost"):
        raise error
    assert "the user has no right to it" in refused.value.found
    assert "docs/operations.md" in refused.value.needed
