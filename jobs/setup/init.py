"""`ringfence init`: inspect the live graph, propose a filled-in configuration, give reasons."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from ringfence.connector.errors import ConfigError
from ringfence.connector.neo4j.embedded import Progress
from ringfence.jobs.config.load import load_values
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.workspace import open_graph
from ringfence.jobs.setup.proposal.proposal import Ask, Proposal, propose
from ringfence.jobs.setup.proposal.toml import as_toml

__all__ = ["Proposal", "run_init"]


def run_init(
    output: Path,
    uri: str,
    user: str,
    label: str | None,
    project: str,
    *,
    force: bool,
    class_property: str | None = None,
    ask: Ask | None = None,
    download: Callable[[Progress], None] | None = None,
) -> Proposal:
    """Inspect the graph behind `uri` and write the proposal to `output`."""
    if output.exists() and not force:
        raise ConfigError(
            found=f"{output} exists",
            needed="the name of a new file, or --force to replace the old one",
            next_step=f"ringfence init --uri {shlex.quote(uri)} --output other.toml",
        )
    with open_graph(_server_settings(uri, user, output), download) as graph:
        proposal = propose(graph, label, class_property, ask)
    output.write_text(as_toml(proposal, project, uri, user), encoding="utf-8")
    return proposal


def _server_settings(uri: str, user: str, output: Path) -> Settings:
    """Return settings that say no more than where the server is."""
    values = {"neo4j": {"uri": uri, "user": user}}
    graph = {"label": "-", "key": "-", "features": "-", "class_property": "-"}
    return load_values({**values, "graph": graph}, output, os.environ)
