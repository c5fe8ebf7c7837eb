"""`ringfence init`: inspect the live graph, propose a filled-in configuration, give reasons."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from ringfence.connector.errors import ConfigError
from ringfence.connector.neo4j.embedded import ServerProgress
from ringfence.jobs.config.load import load_values
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.config.sources.server import HOME_DATABASE
from ringfence.jobs.project.workspace import open_graph
from ringfence.jobs.setup.proposal.proposal import Ask, Proposal, propose
from ringfence.jobs.setup.proposal.toml import as_toml, server_lines

__all__ = ["Proposal", "run_init"]


def run_init(
    output: Path,
    uri: str | None,
    user: str | None,
    label: str | None,
    project: str,
    *,
    force: bool,
    database: str | None = None,
    credentials: Path | None = None,
    class_property: str | None = None,
    ask: Ask | None = None,
    download: Callable[[ServerProgress], None] | None = None,
) -> Proposal:
    """Inspect a graph and write the proposal to `output`, with the address that was inspected.

    What is None comes from RINGFENCE_*, the credentials file or NEO4J_*; the database is then the
    user's home one.
    """
    if output.exists() and not force:
        raise ConfigError(
            found=f"{output} exists",
            needed="the name of a new file, or --force to replace the old one",
            next_step="ringfence init"
            + (f" --uri {shlex.quote(uri)}" if uri else "")
            + " --output other.toml",
        )
    given = {"uri": uri, "user": user, "database": database, "credentials": credentials}
    server = {name: str(value) for name, value in given.items() if value is not None}
    if credentials is not None:  # as the file will have it
        server["credentials"] = os.path.relpath(credentials, output.resolve().parent)
    settings = _server_settings(server, output)
    with open_graph(settings, download) as graph:
        proposal = propose(graph, label, class_property, ask)
        neo4j = settings.neo4j.model_copy(update={"database": graph.database})
    output.write_text(as_toml(proposal, project, server_lines(neo4j)), encoding="utf-8")
    return proposal


def _server_settings(server: dict[str, str], output: Path) -> Settings:
    """Return settings with nothing but the server's address; no database is the home one."""
    graph = {"label": "-", "key": "-", "features": "-", "class_property": "-"}
    settings = load_values({"neo4j": server, "graph": graph}, output, os.environ, is_new=True)
    if "database" in settings.neo4j.model_fields_set:
        return settings
    home = settings.neo4j.model_copy(update={"database": HOME_DATABASE})
    return settings.model_copy(update={"neo4j": home})
