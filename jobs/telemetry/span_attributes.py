"""Names of what spans say, by OpenTelemetry's semantic conventions where they have one.

`service.*` is in the resource, `error.type` on a run that failed, `db.*` and `server.*` on steps
that are one database's work. What they have no name for begins with `ringfence.`. A name that was
replaced is written beside the new one for one version (UPGRADING.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ringfence import __version__

if TYPE_CHECKING:
    from ringfence.jobs.config.settings import Settings
    from ringfence.jobs.telemetry.traced_run import TracedRun

__all__ = ["REPLACED", "resource_attributes", "root_attributes", "step_attributes"]

Attributes = dict[str, str | int]

SERVICE = "ringfence"
GRAPH_STEPS = ("read", "read classes", "write graph")
STORE_STEPS = ("decide", "count coverage", "record")
REPLACED = {"ringfence.version": "ringfence.model.version"}
"""Old names, each with the one that says the same."""


def resource_attributes(run: TracedRun) -> Attributes:
    """Return who sends: the program, its version, and this run of it."""
    return {
        "service.name": SERVICE,
        "service.version": __version__,
        "service.instance.id": run.run_id,
    }


def root_attributes(run: TracedRun) -> Attributes:
    """Return what the span of the whole run says."""
    facts: Attributes = {f"ringfence.{name}": value for name, value in run.facts.items()}
    for old, new in REPLACED.items():
        if old in facts:
            facts[new] = facts[old]
    failed = {"error.type": run.error} if run.error else {}
    return {"ringfence.project": run.project, "ringfence.verb": run.verb, **facts, **failed}


def step_attributes(step: str, settings: Settings) -> Attributes:
    """Return which database a step works in; nothing for a step that computes, or uses both."""
    if step in GRAPH_STEPS:
        uri = settings.neo4j.uri
        return _database("neo4j", settings.neo4j.database, "" if uri == "embedded" else uri)
    if step in STORE_STEPS:
        url = settings.audit.url
        system = url.partition(":")[0].partition("+")[0]
        name = "" if system == "sqlite" else urlsplit(url).path.lstrip("/")
        return _database(system, name, "" if system == "sqlite" else url)
    return {}


def _database(system: str, name: str, address: str) -> Attributes:
    parts = urlsplit(address)
    given: Mapping[str, str | int | None] = {
        "db.system.name": system,
        "db.namespace": name,
        "server.address": parts.hostname,
        "server.port": parts.port,
    }
    return {key: value for key, value in given.items() if value}
