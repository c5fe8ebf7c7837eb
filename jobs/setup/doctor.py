"""`ringfence doctor`: the configuration against the live graph and both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from ringfence.connector.errors import RingfenceError
from ringfence.connector.neo4j.embedded import Progress
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.project.workspace import open_graph
from ringfence.jobs.setup.checks.engine import check_engine
from ringfence.jobs.setup.checks.graph import check_graph
from ringfence.jobs.setup.checks.schedule import check_schedule
from ringfence.jobs.setup.checks.store import check_store
from ringfence.jobs.setup.checks.telemetry import check_telemetry
from ringfence.jobs.setup.finding import Finding, from_error


def run_doctor(
    config: Path | None, download: Callable[[Progress], None] | None = None
) -> list[Finding]:
    """Return every finding, also where some part can't be reached at all."""
    try:
        settings = load(config)
    except RingfenceError as error:
        return [from_error(error)]
    findings = [Finding("ok", "the configuration can be read"), *check_schedule(settings)]
    findings += check_telemetry(settings)
    findings += check_engine(settings)
    with ExitStack() as stack:
        findings += _check_neo4j(settings, stack, download)
        findings += _check_audit_store(settings, stack)
    return findings


def _check_neo4j(
    settings: Settings, stack: ExitStack, download: Callable[[Progress], None] | None
) -> Iterator[Finding]:
    try:
        graph = stack.enter_context(open_graph(settings, download))
    except RingfenceError as error:
        yield from_error(error)
        return
    yield Finding("ok", f"Neo4j answers at {graph.uri}")
    yield from check_graph(graph, settings)


def _check_audit_store(settings: Settings, stack: ExitStack) -> Iterator[Finding]:
    try:
        store = stack.enter_context(open_audit(settings))
        yield from check_store(store, settings)
    except RingfenceError as error:
        yield from_error(error)
