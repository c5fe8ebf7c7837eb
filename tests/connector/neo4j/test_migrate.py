"""Migrations of the graph, and what the server's refusals look like."""

import re

import pytest

from ringfence.connector.errors import ConfigError, GraphError, ServerError, WrongVersion
from ringfence.connector.mapping import map_one_label
from ringfence.connector.neo4j import migrate
from ringfence.connector.neo4j.driver import connect


def test_migrating_the_graph_twice_does_no_harm(graph, connected):
    with pytest.raises(WrongVersion, match="ringfence migrate"):
        migrate.require_graph(connected)
    assert migrate.migrate_graph(connected) == [
        "graph 0001: 0001_first",
        "graph 0002: 0002_promises",
    ]
    assert migrate.migrate_graph(connected) == []
    migrate.require_graph(connected)
    names = {row["name"] for row in graph.run("SHOW CONSTRAINTS YIELD name")}
    assert {"ringfence_run", "ringfence_class", "ringfence_evaluated", "ringfence_fence"} <= names


def test_a_graph_newer_than_the_code_is_refused(graph, connected):
    migrate.migrate_graph(connected)
    graph.run("CREATE (:RingfenceMigration {number: 9999, checksum: 'x'})")
    for attempt in (migrate.migrate_graph, migrate.require_graph):
        with pytest.raises(WrongVersion, match="a newer ringfence has been here"):
            attempt(connected)


def test_a_migration_that_was_changed_afterwards_is_refused(graph, connected):
    migrate.migrate_graph(connected)
    graph.run("MATCH (m:RingfenceMigration) SET m.checksum = 'other'")
    with pytest.raises(WrongVersion, match="changed after it had been applied"):
        migrate.migrate_graph(connected)


MAPPING = map_one_label(
    label="My Account", key="the id", features="f", class_property="kind", created_at="made"
)


def test_an_ordinary_index_on_the_key_is_named_with_the_statement_that_drops_it(graph, connected):
    graph.run("CREATE INDEX `old ``index` FOR (n:`My Account`) ON (n.`the id`)")
    graph.run("CREATE INDEX other FOR (n:`My Account`) ON (n.x, n.`the id`)")  # not in the way
    with pytest.raises(GraphError, match="an ordinary index, old `index, stands on") as caught:
        migrate.create_user_indexes(connected, MAPPING)
    statement = re.search("DROP INDEX .* IF EXISTS", caught.value.next_step).group()
    graph.run(statement)
    assert "graph index on My Account.the id" in migrate.create_user_indexes(connected, MAPPING)
    unique = "SHOW CONSTRAINTS YIELD type, properties WHERE properties = ['the id'] RETURN type"
    assert graph.run(unique)[0]["type"].endswith("UNIQUENESS")
    assert migrate.create_user_indexes(connected, MAPPING) == []


def test_keys_that_are_not_unique_are_named(graph, connected):
    graph.run("UNWIND [1, 1, 2] AS id CREATE (:`My Account` {`the id`: id})")
    with pytest.raises(GraphError, match=r"not unique: 1 \(2 nodes\)"):
        migrate.create_user_indexes(connected, MAPPING)


def test_a_wrong_password_is_said_in_words(graph):
    with pytest.raises(ServerError, match="refused the user or the password") as caught:
        connect(graph.uri, "neo4j", "wrong-password")
    assert "wrong-password" not in str(caught.value)


def test_a_missing_password_names_the_variable(graph):
    with pytest.raises(ConfigError, match="RINGFENCE_NEO4J_PASSWORD"):
        connect(graph.uri, "neo4j", None)


def test_a_server_that_does_not_answer_is_said_in_words():
    with pytest.raises(ServerError, match="no Neo4j server answers at bolt://127"):
        connect("bolt://127.0.0.1:1", "neo4j", "x")


def test_an_unknown_database_is_said_in_words(graph):
    with pytest.raises(ServerError, match="has no database 'nosuch'"):
        connect(graph.uri, *graph.auth, database="nosuch")


def test_reading_sessions_can_not_write(connected):
    with pytest.raises(GraphError, match="refused a statement"):
        connected.read("CREATE (n:Sneaky) RETURN n")


def test_a_refused_statement_repeats_no_values_of_the_graph(graph, connected):
    graph.run("CREATE CONSTRAINT FOR (n:Secret) REQUIRE n.id IS UNIQUE")
    graph.run("CREATE (:Secret {id: 'hunter2'})")
    with pytest.raises(GraphError) as caught:
        connected.run("CREATE (:Secret {id: $id})", id="hunter2")
    assert "hunter2" not in str(caught.value)
