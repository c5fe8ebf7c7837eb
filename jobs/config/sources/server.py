"""Which Neo4j a project uses where its file leaves that open: credentials file, then NEO4J_*.

In this order: RINGFENCE_NEO4J_*, the lines of `ringfence.toml`, the file of `[neo4j] credentials`,
the variables that Neo4j's own tools use (NEO4J_URI, NEO4J_USERNAME, NEO4J_PASSWORD,
NEO4J_DATABASE), defaults. The last variables may belong to another application: they are read only
where nothing before them names an address, so that they never move a project; a file without an
address whose project has an embedded server already names that one by its folder. NEO4J_PASSWORD
is also taken for the very server and user that NEO4J_URI and NEO4J_USERNAME name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.sources.environment_file import read_assignments
from ringfence.jobs.config.sources.secret_files import read_small_file

__all__ = [
    "DEFAULT_FOLDER",
    "EMBEDDED_FOLDER",
    "HOME_DATABASE",
    "VARIABLES",
    "complete_server",
    "is_same_server",
    "read_credentials",
]

VARIABLES = {
    "uri": "NEO4J_URI",
    "user": "NEO4J_USERNAME",
    "password": "NEO4J_PASSWORD",
    "database": "NEO4J_DATABASE",
}
"""The settings of [neo4j] that Neo4j's tools and Aura's downloaded file have, under their names."""

HOME_DATABASE = ""
DEFAULT_FOLDER = ".ringfence"  # of [engine] folder
EMBEDDED_FOLDER = "neo4j"
"""Folder of the embedded server, in that of the project."""


def complete_server(
    values: dict[str, Any],
    folder: Path,
    environment: Mapping[str, str],
    *,
    is_new: bool = False,
) -> None:
    """Fill in what `[neo4j]` leaves open; `folder` is that of the configuration file.

    A project `is_new` where there was no file before.
    """
    server = values.setdefault("neo4j", {})
    if not isinstance(server, dict):
        return  # the check of all settings says what is wrong
    if path := server.get("credentials"):
        _take(server, read_credentials(folder / str(path)), str(path))
    given = {key: environment[name] for key, name in VARIABLES.items() if environment.get(name)}
    if "uri" not in given:
        return
    if "uri" not in server:
        if is_new or not _has_embedded_server(values, folder):
            _take(server, given, "the environment")
        return
    same_user = given.get("user", "neo4j") == server.get("user", "neo4j")
    if is_same_server(server["uri"], given["uri"]) and same_user and "password" in given:
        server.setdefault("password", given["password"])


def read_credentials(path: Path) -> dict[str, str]:
    """Read lines NAME=value as Aura's downloaded file has them; return settings of [neo4j]."""
    text = read_small_file(path, "the file that Aura offers when an instance is made")
    names = read_assignments(text)
    missing = [name for name in ("NEO4J_URI", "NEO4J_PASSWORD") if not names.get(name)]
    if missing:
        there = ", ".join(sorted(name for name in names if name.isidentifier())) or "no NAME=value"
        raise ConfigError(
            found=f"{path} has no {' and no '.join(missing)}; it has: {there}",
            needed="a credentials file of Neo4j Aura: NEO4J_URI, NEO4J_USERNAME, NEO4J_PASSWORD "
            "and NEO4J_DATABASE, one per line",
            next_step="download the file anew, or write these lines into it",
        )
    return {key: names[name] for key, name in VARIABLES.items() if names.get(name)}


def _has_embedded_server(values: Mapping[str, Any], folder: Path) -> bool:
    """Whether the project's embedded server was ever started: its default address is a choice."""
    engine = values.get("engine")
    place = engine.get("folder", DEFAULT_FOLDER) if isinstance(engine, dict) else DEFAULT_FOLDER
    return isinstance(place, str | Path) and (folder / place / EMBEDDED_FOLDER).is_dir()


def _take(server: dict[str, Any], given: Mapping[str, str], source: str) -> None:
    """Let `given` fill the gaps; its password is never sent to another server."""
    if "uri" in server and not is_same_server(server["uri"], given["uri"]):
        raise ConfigError(
            found=f"{source} is for {given['uri']}, and [neo4j] uri is {server['uri']}",
            needed="one server: a password is not sent to another one",
            next_step="take the line uri, or the line credentials, out of [neo4j]",
        )
    for key, value in given.items():
        server.setdefault(key, value)
    server.setdefault("database", HOME_DATABASE)


def is_same_server(uri: object, other: str) -> bool:
    """Whether two addresses are written alike."""
    return str(uri).strip().rstrip("/") == other.strip().rstrip("/")
