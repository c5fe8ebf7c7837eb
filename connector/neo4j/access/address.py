"""Neo4j's address: what a URI may be, and whether a server answers there; without the driver.

The driver takes half a CPU second to import; configuration errors are reported before that.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from ringfence.connector.errors import ConfigError, ServerError
from ringfence.connector.hosts import is_loopback

SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
DEFAULT_PORT = 7687
ANSWER_SECONDS = 30.0  # as the driver waits for a connection


def check_uri(uri: str, tls: str) -> None:
    """Refuse a URI that holds a password, and plain text to another machine."""
    parts = urlsplit(uri)
    if parts.username or parts.password:
        raise ConfigError(
            found="[neo4j] uri holds a user or a password",
            needed="neither: drivers print URIs into logs and errors",
            next_step="set [neo4j] user, and RINGFENCE_NEO4J_PASSWORD in the environment",
        )
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ConfigError(
            found=f"[neo4j] uri is {uri!r}",
            needed="embedded, bolt://host:7687, bolt+s://…, neo4j://… or neo4j+s://…",
        )
    if tls == "required" and "+s" not in parts.scheme and not is_loopback(parts.hostname):
        raise ConfigError(
            found=f"{uri} would send data over the network in plain text",
            needed="an encrypted scheme (bolt+s or neo4j+s) for a server on another machine",
            next_step='change the scheme, or set [neo4j] tls = "off" on purpose',
        )


def require_password(uri: str, user: str, password: str | None) -> str:
    """Return the password; a `ConfigError` where there is none."""
    if password is None:
        raise ConfigError(
            found=f"no password for {user} at {uri}",
            needed="the password, from the environment",
            next_step="export RINGFENCE_NEO4J_PASSWORD=…",
        )
    return password


def require_answer(uri: str) -> None:
    """Raise `ServerError` if nothing accepts connections at the host and port of a URI."""
    parts = urlsplit(uri)
    place = (parts.hostname or "", parts.port or DEFAULT_PORT)
    try:
        socket.create_connection(place, ANSWER_SECONDS).close()
    except OSError as error:
        raise no_answer(uri, str(error)) from None


def no_answer(uri: str, reason: str) -> ServerError:
    """Return the error of a server that does not answer."""
    return ServerError(
        found=f"no Neo4j server answers at {uri} ({reason})",
        needed="a running server",
        next_step="check [neo4j] uri, or set it to embedded and: ringfence neo4j start",
    )
