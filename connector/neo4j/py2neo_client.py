"""An independent check: py2neo reads what the official driver wrote.

py2neo is end-of-life upstream (last release 2021.2.4) and is used for nothing but this reading. Its
known failures stay in here: a wrong password reads "Connection has been closed", so our own driver
logs in first and says what is wrong; datetimes with a time zone can't be sent, so they are refused
with a reason; `graph.schema` calls procedures that the server no longer has, so its replacement
names a query to use instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any

from ringfence.connector.errors import ConfigError, GraphError, ServerError
from ringfence.connector.neo4j.driver import connect

RUNS = """
MATCH (r:RingfenceRun {project: $project})
RETURN r.seq AS seq, r.rule AS rule, r.alpha AS alpha, r.threshold AS threshold,
       r.level AS level, r.promise AS promise, r.calibration AS calibration, r.model AS model,
       count { (r)<-[:EVALUATED]-() } AS evaluated
ORDER BY seq
"""

SETS = """
UNWIND $keys AS key
MATCH (n)-[e:EVALUATED {key: key}]->(r:RingfenceRun)
OPTIONAL MATCH (n)-[m:MAY_BE]->(c:RingfenceClass {project: $project})
RETURN key, r.seq AS seq, e.size AS size, e.alpha AS alpha, e.level AS level, e.band AS band,
       e.sampled AS sampled, e.lists AS lists, collect(c.name) AS names, collect(m.p) AS p,
       collect(m.in_set) AS in_set
"""

KEYS = """
MATCH (r:RingfenceRun {id: $run})<-[e:EVALUATED]-() WHERE e.key > $after
RETURN e.key AS key ORDER BY key LIMIT $rows
"""


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run as its node in the graph shows it, with the number of nodes that it evaluated."""

    seq: int
    rule: str
    alpha: float
    threshold: float | None
    level: float | None
    promise: str
    calibration: int
    model: str
    evaluated: int


@dataclass(frozen=True, slots=True)
class SeenSet:
    """A node's set as it stands in the graph: class to p-value, and the classes in the set."""

    seq: int
    size: int
    alpha: float
    level: float | None
    band: str | None
    p: dict[str, float]
    in_set: frozenset[str]
    sampled: bool | None = None
    lists: Any = None


class Py2neoClient:
    """Reading queries by py2neo; `graph` is its own object, for the classes in `ogm`."""

    def __init__(self, graph: Any, uri: str) -> None:
        self.graph = graph
        self.uri = uri

    def read(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return all rows of a reading query."""
        from py2neo.errors import ConnectionBroken, ConnectionUnavailable, Neo4jError

        _refuse_zoned(parameters)
        try:
            return list(self.graph.query(query, parameters).data())
        except Neo4jError as error:
            raise GraphError(found=f"Neo4j refused a statement of py2neo ({error.code})") from None
        except (ConnectionUnavailable, ConnectionBroken, OSError):
            raise ServerError(
                found=f"py2neo lost its connection to {self.uri}",
                needed="a running server",
                next_step="ringfence doctor",
            ) from None

    def runs(self, project: str) -> dict[int, SeenRun]:
        """Return a project's runs by number."""
        return {row["seq"]: SeenRun(**row) for row in self.read(RUNS, project=project)}

    def sets(self, project: str, keys: Sequence[str]) -> dict[str, SeenSet]:
        """Return the sets behind those EVALUATED keys (project/typed key) that are there."""
        rows = self.read(SETS, project=project, keys=list(keys))
        return {
            row["key"]: SeenSet(
                row["seq"],
                row["size"],
                row["alpha"],
                row["level"],
                row["band"],
                dict(zip(row["names"], row["p"], strict=False)),
                frozenset(
                    name
                    for name, inside in zip(row["names"], row["in_set"], strict=False)
                    if inside is True
                ),
                row["sampled"],
                row["lists"],
            )
            for row in rows
        }

    def keys(self, run: str, rows: int) -> Iterator[list[str]]:
        """Yield every EVALUATED key of a run (by its id) in blocks."""
        after = ""
        while block := [row["key"] for row in self.read(KEYS, run=run, after=after, rows=rows)]:
            yield block
            after = block[-1]


@contextmanager
def connect_py2neo(
    uri: str, user: str, password: str | None, database: str = "neo4j", tls: str = "required"
) -> Iterator[Py2neoClient]:
    """Connect by py2neo for the length of a `with` block."""
    graph = _open(uri, user, password, database, tls)
    graph.schema = NoSchema()
    try:
        yield Py2neoClient(graph, uri)
    finally:
        graph.service.connector.close()


def _open(uri: str, user: str, password: str | None, database: str, tls: str) -> Any:
    try:
        import py2neo
    except ModuleNotFoundError:
        raise ConfigError(
            found="py2neo is not installed",
            needed="py2neo 2021.2.4, for the independent check",
            next_step="pip install 'ringfence[py2neo]'",
        ) from None
    connect(uri, user, password, database, tls).close()  # says what is wrong, where something is
    try:
        return py2neo.Graph(uri, auth=(user, password), name=database, user_agent="ringfence")
    except py2neo.ConnectionUnavailable as error:
        raise ServerError(
            found=f"{uri} answers the official driver, but not py2neo ({error})",
            needed="a server that speaks a version of Bolt which py2neo 2021.2.4 knows",
            next_step="ringfence verify   (without py2neo)",
        ) from None


class NoSchema:
    """Replaces py2neo's schema helpers, which call procedures that are gone."""

    def __getattr__(self, name: str) -> Any:
        raise GraphError(
            found=f"py2neo's graph.schema.{name} doesn't work with this server",
            needed="a query instead",
            next_step='client.read("SHOW INDEXES")',
        )


def _refuse_zoned(value: object) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            _refuse_zoned(item)
    if isinstance(value, datetime | time) and value.tzinfo is not None:
        raise GraphError(
            found="a parameter that is a time with a time zone, which py2neo can't send",
            needed="the same as text",
            next_step="write datetime($x) in the query and pass x.isoformat()",
        )
