"""The connection to Neo4j: allowed servers, how reads and writes run, what errors mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from ringfence.connector.errors import GraphError, RingfenceError, ServerError
from ringfence.connector.neo4j.access.address import check_uri, no_answer
from ringfence.connector.neo4j.access.databases import IDENTITY, DatabaseIdentity, require_database
from ringfence.connector.neo4j.access.driver_log import use_plain_words
from ringfence.connector.neo4j.access.login import Login
from ringfence.connector.neo4j.access.rights import Rights, missing_grant, read_rights
from ringfence.connector.neo4j.bolt import (
    READ_ACCESS,
    WRITE_ACCESS,
    AuthError,
    ClientError,
    ConfigurationError,
    Driver,
    DriverError,
    GraphDatabase,
    IncompleteCommit,
    ManagedTransaction,
    Neo4jError,
    Record,
    ResultFailedError,
    ResultSummary,
    ServiceUnavailable,
    Session,
    SessionExpired,
    TokenExpired,
    Vector,
    unit_of_work,
)

T = TypeVar("T")
VECTORS = "CYPHER 25 RETURN vector(coll.flatten([[coll.max([1.0])]]), 1, FLOAT32) AS one"
ANYTHING = "RETURN 1 AS one"
RETRY_SECONDS = 180.0  # a server restart took 30 to 40 s
MAX_ACQUISITION_SECONDS = 60.0  # for a connection of the pool
MAX_CONNECTION_SECONDS = 30.0  # until one is open
MAX_MESSAGE_CHARS = 200  # of a message of the server or the driver
SLOW_TRIES = 3  # of a transaction that the server ended after its time
use_plain_words()


class Graph:
    """A database of a Neo4j server; reads run in READ sessions, writes as managed transactions.

    In a cluster, where the driver routes queries (neo4j://), all sessions share bookmarks: a read
    waits until its server has what was written, or read, before.
    """

    def __init__(
        self,
        driver: Driver,
        uri: str,
        database: str,
        secret_name: str = Login("").secret_name,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self.driver = driver
        self.secret_name = secret_name
        self.retry_seconds = retry_seconds
        self.uri = uri
        self.database = database
        self.is_routed = uri.startswith("neo4j")
        self._bookmarks = GraphDatabase.bookmark_manager() if self.is_routed else None

    @cached_property
    def has_vectors(self) -> bool:
        """Whether the server can pack numbers into vectors, and this connection carries them."""
        try:
            return isinstance(self.read(VECTORS)[0]["one"], Vector)
        except GraphError:  # older than Cypher 25, or than its list functions
            return False

    @cached_property
    def identity(self) -> DatabaseIdentity | None:
        """The database's name and id; None where the user may not ask."""
        try:
            row = self.read(IDENTITY)[0]
        except GraphError:
            return None
        return DatabaseIdentity(row["id"], row["name"])

    @cached_property
    def rights(self) -> Rights:
        """What the server says that the user may do; asked once per connection."""
        return read_rights(self.read)

    def read(self, query: str, **parameters: Any) -> list[Record]:
        """Return all rows of a reading query."""

        def work(tx: ManagedTransaction) -> list[Record]:
            return list(tx.run(query, parameters))

        return self._answered(lambda session: session.execute_read(work), READ_ACCESS)

    def explain(self, query: str) -> ResultSummary:
        """Return what a query would do, without running it: its kind and its plan."""

        def work(tx: ManagedTransaction) -> ResultSummary:
            return tx.run(f"EXPLAIN {query}").consume()

        return self._answered(lambda session: session.execute_read(work), READ_ACCESS)

    def read_newest(self, query: str, **parameters: Any) -> list[Record]:
        """Return all rows of a reading query that a cluster's leader answers.

        Followers lag behind. What is read after this, from anywhere, is no older than the answer.
        """

        def work(tx: ManagedTransaction) -> list[Record]:
            return list(tx.run(query, parameters))

        if not self.is_routed:
            return self.read(query, **parameters)
        return self._answered(lambda session: session.execute_write(work), WRITE_ACCESS)

    def stream(self, query: str, fetch_size: int, **parameters: Any) -> Iterator[Record]:
        """Yield rows of a reading query without holding them all.

        A stream that breaks half-way raises: the reader starts its read again, nothing is skipped.
        The query is a transaction of its own, without a BEGIN: a server that two threads sent one
        at the same time now and then answered the one alone (docs/scaling.md).
        """
        with self._session(default_access_mode=READ_ACCESS, fetch_size=fetch_size) as session:
            yield from session.run(query, parameters)

    def write(
        self, work: Callable[[ManagedTransaction], T], timeout_seconds: float | None = None
    ) -> T:
        """Run `work` in one managed transaction; it must be idempotent, a retry runs it again.

        The server ends a transaction after `timeout_seconds`: one whose client was frozen, or
        whose machine is gone, would hold its locks for ever.
        """
        timed = unit_of_work(timeout=timeout_seconds)(work)
        return self._answered(lambda session: session.execute_write(timed), WRITE_ACCESS)

    def run(self, statement: str, **parameters: Any) -> None:
        """Run one writing or schema statement in a managed transaction of its own."""
        self.write(lambda tx: tx.run(statement, parameters).consume())

    def run_in_parts(self, statement: str) -> None:
        """Run a statement with CALL … IN TRANSACTIONS, which commits part by part.

        It must be one that goes on where it was left: after a cut connection it is run again.
        """
        self._answered(lambda session: session.run(statement).consume(), WRITE_ACCESS)

    def close(self) -> None:
        """Close all connections."""
        self.driver.close()

    def _answered(self, transaction: Callable[[Session], T], access: str) -> T:
        """Repeat a transaction until an answer comes.

        A connection cut at COMMIT leaves it open whether the commit happened; the driver does not
        retry that. Nor does it retry what the server ended after its time: a server that has just
        started is slow at first, so a few more tries are made, and a process that lost its lease
        meanwhile is stopped by the fence.
        """
        deadline, slow = time.monotonic() + self.retry_seconds, 0
        while True:
            with self._session(default_access_mode=access) as session:
                try:
                    return transaction(session)
                except IncompleteCommit:
                    if time.monotonic() > deadline:
                        raise
                except ClientError as error:
                    slow += 1
                    tried = slow == SLOW_TRIES or time.monotonic() > deadline
                    if tried or not _took_too_long(error):
                        raise

    @contextmanager
    def _session(self, **settings: Any) -> Iterator[Session]:
        if self._bookmarks is not None:
            settings["bookmark_manager"] = self._bookmarks
        with (
            explained(self.uri, self.secret_name),
            self.driver.session(database=self.database, **settings) as opened,
        ):
            yield opened


def connect(
    uri: str,
    user: str,
    password: str | None,
    database: str = "neo4j",
    tls: str = "required",
    retry_seconds: float = RETRY_SECONDS,
) -> Graph:
    """Connect with a password, and make sure that server and database answer."""
    return log_in(uri, Login(user, password), database, tls, retry_seconds)


def log_in(
    uri: str, login: Login, database: str, tls: str, retry_seconds: float = RETRY_SECONDS
) -> Graph:
    """Connect, log in, and make sure that server and database answer.

    An empty `database` is the user's home database. A read or write is retried for
    `retry_seconds` while the server does not answer.
    """
    check_uri(uri, tls)
    options = login.driver_options(uri)
    with explained(uri, login.secret_name):
        driver = GraphDatabase.driver(
            uri,
            **options,
            max_transaction_retry_time=retry_seconds,
            connection_acquisition_timeout=min(retry_seconds, MAX_ACQUISITION_SECONDS),
            connection_timeout=min(retry_seconds, MAX_CONNECTION_SECONDS),
            notifications_min_severity="OFF",
            user_agent="ringfence",
        )
        try:
            driver.verify_connectivity()
            name = require_database(driver, uri, database)
        except (DriverError, Neo4jError, RingfenceError):
            driver.close()
            raise
    graph = Graph(driver, uri, name, login.secret_name, retry_seconds)
    if graph.is_routed:  # what another process wrote may not have reached every follower yet
        graph.read_newest(ANYTHING)
    return graph


def require_answer(graph: Graph) -> Graph:
    """Return a graph whose server answers now; a `ServerError` where it does not."""
    graph.read(ANYTHING)
    return graph


@contextmanager
def explained(uri: str, secret_name: str = Login("").secret_name) -> Iterator[None]:
    """Turn the driver's exceptions into found, needed, next."""
    try:
        yield
    except TokenExpired:
        raise ServerError(
            found=f"{uri} says that {secret_name} has expired",
            needed="a new one from whoever issues it",
            next_step="export RINGFENCE_NEO4J_TOKEN=…, or write it into the file of "
            "RINGFENCE_NEO4J_TOKEN_FILE; then run again, nothing is lost",
        ) from None
    except AuthError:
        raise _refused_login(uri, secret_name) from None
    except (ServiceUnavailable, SessionExpired, ConfigurationError, OSError) as error:
        raise no_answer(uri, _first_line(error)) from None
    except Neo4jError as error:
        raise _refused(uri, error) from None
    except ResultFailedError as error:
        # what a transaction that ends after a refused statement may raise in place of the refusal
        if not isinstance(error.__cause__, Neo4jError):
            raise
        raise _refused(uri, error.__cause__) from None


def _refused_login(uri: str, secret_name: str) -> ServerError:
    if secret_name != Login("").secret_name:
        return ServerError(
            found=f"{uri} refused {secret_name}",
            needed="one that is valid now, and a server that is set up for it ([neo4j] auth)",
            next_step="export RINGFENCE_NEO4J_TOKEN=…, then: ringfence doctor",
        )
    return ServerError(
        found=f"{uri} refused the user or the password",
        needed="[neo4j] user and the password that belongs to it",
        next_step="export RINGFENCE_NEO4J_PASSWORD=…, then: ringfence doctor",
    )


def _refused(uri: str, error: Neo4jError) -> RingfenceError:
    code = error.code or ""
    if "DatabaseNotFound" in code:
        return ServerError(
            found=f"{uri} has no database of that name any more",
            needed="[neo4j] database as the server knows it",
            next_step="ringfence doctor   (lists the databases that the user may see)",
        )
    if "Security.Forbidden" in code:
        return _forbidden(code, missing_grant(error.message or ""))
    if _took_too_long(error):
        return ServerError(
            found="Neo4j ended a write that took longer than the run's lease",
            needed="a server that answers faster, or a longer [engine] lease_seconds",
            next_step="run again; nothing is lost",
        )
    # only what is about the statement is repeated: other messages quote values of the graph
    if not code.startswith("Neo.ClientError.Statement"):
        return GraphError(found=f"Neo4j refused a statement ({code})")
    message = next(iter((error.message or "").splitlines()), "")[:MAX_MESSAGE_CHARS]
    return GraphError(found=f"Neo4j refused a statement ({code}): {message}")


def _forbidden(code: str, grant: str) -> GraphError:
    problem = f"Neo4j refused a statement ({code}): the user has no right to it"
    if not grant:
        return GraphError(
            found=problem,
            needed="the rights that docs/operations.md lists",
            next_step="grant them as an administrator of Neo4j, then: ringfence doctor",
        )
    return GraphError(
        found=problem,
        needed="the right that is missing, from an administrator of Neo4j (docs/operations.md)",
        next_step=f"{grant} TO <a role of the user>; then: ringfence doctor",
    )


def _took_too_long(error: Neo4jError) -> bool:
    return "TransactionTimedOut" in (error.code or "")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:MAX_MESSAGE_CHARS]
