"""What the user may do in Neo4j: asked of the server, and read from what it refused.

Community Edition has no roles: every user may do everything. Elsewhere each user may list their own
privileges (SHOW USER PRIVILEGES). Without SHOW TRANSACTION (*) the list of open transactions is
short, and nothing in it says so: what the server does not say counts as not allowed.

>>> missing_grant("Set property for property 'p' on database 'shop' is not allowed for user 'u'.")
'GRANT SET PROPERTY {`p`} ON GRAPH `shop`'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.quoting import quote

__all__ = [
    "MIGRATE",
    "SHOW_TRANSACTION",
    "WORK",
    "Needed",
    "Right",
    "Rights",
    "missing_grant",
    "read_rights",
]

EDITION = "CALL dbms.components() YIELD edition WHERE edition <> '' RETURN edition"
PRIVILEGES = "SHOW USER PRIVILEGES YIELD access, action, graph, segment"
EVERY_USER = "USER(*)"


@dataclass(frozen=True, slots=True)
class Right:
    """A privilege of the user, as the server lists it."""

    is_granted: bool
    action: str
    graph: str
    segment: str

    def is_for(self, database: str) -> bool:
        """Whether it is for this database; one for the home database is taken for another."""
        return self.graph in ("*", database)


@dataclass(frozen=True, slots=True)
class Needed:
    """A right that ringfence needs: the statement without its role, and what grants it.

    Each of `any_of` suffices; one of several actions needs all of them.
    """

    grant: str
    any_of: tuple[frozenset[str], ...]


def _needed(grant: str, *any_of: str) -> Needed:
    return Needed(grant, tuple(frozenset(actions.split("+")) for actions in any_of))


SHOW_TRANSACTION = _needed(
    "SHOW TRANSACTION (*) ON DATABASE {}", "show_transaction", "transaction_management"
)
WORK = (
    _needed("MATCH {{*}} ON GRAPH {}", "match", "traverse+read", "graph_actions"),
    _needed("CREATE ON GRAPH {}", "create_element", "write", "graph_actions"),
    _needed("DELETE ON GRAPH {}", "delete_element", "write", "graph_actions"),
    _needed("SET PROPERTY {{*}} ON GRAPH {}", "set_property", "write", "graph_actions"),
    _needed(
        "NAME MANAGEMENT ON DATABASE {}",
        "token",
        "create_label+create_reltype+create_propertykey",
        "database_actions",
    ),
)
"""What every writing verb needs; docs/operations.md has them with labels and types."""

MIGRATE = (
    _needed("CONSTRAINT MANAGEMENT ON DATABASE {}", "constraint", "database_actions"),
    _needed("INDEX MANAGEMENT ON DATABASE {}", "index", "database_actions"),
)


@dataclass(frozen=True, slots=True)
class Rights:
    """What the server says of its user; `listed` is None where it has roles and does not say."""

    has_roles: bool
    listed: tuple[Right, ...] | None = None

    def sees_all_transactions(self, database: str) -> bool:
        """Whether SHOW TRANSACTIONS is sure to list those of every user."""
        if not self.has_roles:
            return True
        actions = frozenset[str]().union(*SHOW_TRANSACTION.any_of)
        about = [
            right
            for right in self.listed or ()
            if right.is_for(database) and right.action in actions
        ]
        to_all = any(right.is_granted and right.segment == EVERY_USER for right in about)
        return to_all and all(right.is_granted for right in about)

    def missing(self, database: str, needed: Iterable[Needed]) -> list[str]:
        """Return the grants that no privilege of the user covers; labels are not compared."""
        if not self.has_roles or self.listed is None:
            return []
        held = {
            right.action for right in self.listed if right.is_granted and right.is_for(database)
        }
        return [
            f"GRANT {right.grant.format(quote(database))}"
            for right in needed
            if not any(actions <= held for actions in right.any_of)
        ]


def read_rights(read: Callable[[str], Iterable[Any]]) -> Rights:
    """Ask the server, by a function that runs a query; a refusal leaves what it is about open."""
    try:
        editions = {str(row["edition"]).lower() for row in read(EDITION)}
    except GraphError:
        editions = set()
    if editions == {"community"}:
        return Rights(has_roles=False)
    try:
        rows = list(read(PRIVILEGES))
    except GraphError:
        return Rights(has_roles=True)
    return Rights(True, tuple(_right(row) for row in rows))


def _right(row: Any) -> Right:
    return Right(
        str(row["access"]).upper() == "GRANTED",
        str(row["action"]).lower().replace(" ", "_"),
        str(row["graph"]),
        str(row["segment"]),
    )


ON = r" on database '(?P<database>[^']+)' (?:is|are) (?:not allowed|denied)"
REFUSALS = (
    (r"Create node with labels '(?P<name>[^']*)'", "CREATE ON GRAPH {database} NODES {name}"),
    (r"Delete node with labels '(?P<name>[^']*)'", "DELETE ON GRAPH {database} NODES {name}"),
    (
        r"Create relationship with type '(?P<name>[^']*)'",
        "CREATE ON GRAPH {database} RELATIONSHIPS {name}",
    ),
    (
        r"Delete relationship with type '(?P<name>[^']*)'",
        "DELETE ON GRAPH {database} RELATIONSHIPS {name}",
    ),
    (
        r"Set property for property '(?P<name>[^']*)'",
        "SET PROPERTY {{{name}}} ON GRAPH {database}",
    ),
    (r"Creating new (?:node label|property name|relationship type)", "NAME MANAGEMENT"),
    (r"Schema operation '[^']*constraint'|Show constraints", "CONSTRAINT MANAGEMENT"),
    (r"Schema operation '[^']*index'|Show indexes", "INDEX MANAGEMENT"),
)
"""How a server words what it refuses, and what grants it; a right without ON is a database's."""


REFUSED_ANYWHERE = {
    "Database access is not allowed": "ACCESS ON DATABASE <the database>",
    "Executing procedure is not allowed": "EXECUTE PROCEDURE * ON DBMS",
}
"""Refusals that name no database, by how they begin."""


def missing_grant(message: str) -> str:
    """Return the statement that grants what a server refused, without its role; empty if unknown.

    Of the message only names of labels, types and properties are taken, quoted.
    """
    for beginning, grant in REFUSED_ANYWHERE.items():
        if message.startswith(beginning):
            return f"GRANT {grant}"
    for pattern, grant in REFUSALS:
        refused = re.search(f"(?:{pattern}){ON}", message)
        if refused is None:
            continue
        database = quote(refused["database"])
        if "{" not in grant:
            return f"GRANT {grant} ON DATABASE {database}"
        names = ", ".join(map(quote, filter(None, refused["name"].split(",")))) or "*"
        return f"GRANT {grant.format(name=names, database=database)}"
    return ""
