"""The databases of a server: which one is meant, which there are, and which one answered."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.errors import ServerError
from ringfence.connector.neo4j.bolt import (
    READ_ACCESS,
    Driver,
    DriverError,
    Neo4jError,
    TransientError,
)

__all__ = ["DatabaseIdentity", "require_database"]

# of those that the user may see; every user may ask
DATABASES = """
SHOW DATABASES YIELD name, type, requestedStatus, home WHERE type <> 'system'
RETURN DISTINCT name, requestedStatus AS status, home ORDER BY name
"""
# a name and an id that no other database has, this server's or another's
IDENTITY = "CALL db.info() YIELD id, name RETURN id, name"
NOT_TOLD = ("Security.Forbidden", "ProcedureNotFound")  # of a server that is older than db.info()
MAX_DATABASES_NAMED = 20


@dataclass(frozen=True, slots=True)
class DatabaseIdentity:
    """A database by its name and by the id that it was given when it was made."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ListedDatabase:
    """A database that the user may see."""

    name: str
    status: str
    is_home: bool


def require_database(driver: Driver, uri: str, database: str) -> str:
    """Return the name of the database, the user's home one for an empty name, if it answers.

    A database that is only starting is left to the retries of the first query.
    """
    try:
        with driver.session(database=database or None, default_access_mode=READ_ACCESS) as session:
            row = session.run(IDENTITY).single(strict=True)
        return str(row["name"])
    except TransientError:
        meant = _meant_database(driver, uri, database)
        if meant.status != "offline":
            return meant.name
        whose = "" if database else ", the user's home database,"
        raise _unusable(
            driver, uri, f"the database {meant.name}{whose} of {uri} is offline"
        ) from None
    except Neo4jError as error:
        if "DatabaseNotFound" in (error.code or ""):
            raise _unusable(driver, uri, f"{uri} has no database {database!r}") from None
        if any(part in (error.code or "") for part in NOT_TOLD):
            return _meant_database(driver, uri, database).name
        raise


def _unusable(driver: Driver, uri: str, problem: str) -> ServerError:
    databases = list_databases(driver)
    names = [
        f"{row.name}{'' if row.status == 'online' else f' ({row.status})'}" for row in databases
    ]
    shown = ", ".join(names[:MAX_DATABASES_NAMED]) or "none"
    more = (
        f" and {len(names) - MAX_DATABASES_NAMED} more" if len(names) > MAX_DATABASES_NAMED else ""
    )
    choice = next((row.name for row in databases if row.is_home), "NAME")
    return ServerError(
        found=f"{problem}; databases that the user may see there: {shown}{more}",
        needed="[neo4j] database as the server knows it, and online",
        next_step=f"export RINGFENCE_NEO4J_DATABASE={choice}, or set [neo4j] database; then: "
        "ringfence doctor",
    )


def list_databases(driver: Driver) -> list[ListedDatabase]:
    """Return the databases that the user may see; none where the server does not say."""
    try:
        with driver.session(database="system", default_access_mode=READ_ACCESS) as session:
            rows = list(session.run(DATABASES))
    except (Neo4jError, DriverError):
        return []
    return [ListedDatabase(row["name"], row["status"], bool(row["home"])) for row in rows]


def _meant_database(driver: Driver, uri: str, database: str) -> ListedDatabase:
    """Return what the server lists for a name, or as the user's home database for an empty one."""
    rows = [row for row in list_databases(driver) if row.name == database or not database]
    listed = next((row for row in rows if database or row.is_home), None)
    if listed is not None:
        return listed
    if not database:
        raise _unusable(driver, uri, f"{uri} does not say which is the user's home database")
    return ListedDatabase(database, "unknown", is_home=False)
