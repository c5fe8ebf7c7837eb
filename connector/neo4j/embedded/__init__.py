"""A real Neo4j on this machine with nothing to install: no Docker, no Java, no Maven.

from ringfence.connector.neo4j import embedded

with embedded.running("graph") as server:      # or embedded.start(...) / embedded.stop(...)
    driver = GraphDatabase.driver(server.uri, auth=(server.user, server.password))
"""

from ringfence.connector.neo4j.embedded.folder import ServerInfo
from ringfence.connector.neo4j.embedded.jars import VERSION, ServerProgress
from ringfence.connector.neo4j.embedded.options import ServerOptions
from ringfence.connector.neo4j.embedded.server import (
    DEFAULT_FOLDER,
    ServerStatus,
    find_running,
    running,
    start,
    status,
    stop,
)

__all__ = [
    "DEFAULT_FOLDER",
    "VERSION",
    "ServerInfo",
    "ServerOptions",
    "ServerProgress",
    "ServerStatus",
    "find_running",
    "running",
    "start",
    "status",
    "stop",
]
