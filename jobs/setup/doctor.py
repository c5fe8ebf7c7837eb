"""`ringfence doctor`: the configuration against the live graph and both stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from ringfence.connector.errors import RingfenceError, WrongVersion
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.embedded import ServerProgress
from ringfence.connector.store.engine import Store
from ringfence.connector.store.migrate import require_sql
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.project.same_database import remembers_project, require_same_database
from ringfence.jobs.project.workspace import open_graph
from ringfence.jobs.setup.checks.engine import check_engine
from ringfence.jobs.setup.checks.environment import check_environment, check_schedule
from ringfence.jobs.setup.checks.extras import check_extras
from ringfence.jobs.setup.checks.graph import check_graph
from ringfence.jobs.setup.checks.store import check_store
from ringfence.jobs.setup.checks.telemetry import check_telemetry
from ringfence.jobs.setup.finding import Finding, from_error, not_yet


def run_doctor(
    config: Path | None, download: Callable[[ServerProgress], None] | None = None
) -> list[Finding]:
    """Return every finding, also where some part can't be reached at all."""
    try:
        settings = load(config)
    except RingfenceError as error:
        return [from_error(error)]
    findings = [Finding("ok", "the configuration can be read"), *check_schedule(settings)]
    findings += check_environment(os.environ, settings.neo4j.uri)
    findings += check_telemetry(settings)
    findings += check_engine(settings)
    findings += check_extras(settings)
    with ExitStack() as stack:
        graph_findings, graph = _check_neo4j(settings, stack, download)
        findings += graph_findings
        findings += _check_audit_store(settings, stack, graph)
    return findings


def _check_neo4j(
    settings: Settings, stack: ExitStack, download: Callable[[ServerProgress], None] | None
) -> tuple[list[Finding], Graph | None]:
    try:
        graph = stack.enter_context(open_graph(settings, download))
    except RingfenceError as error:
        return [from_error(error)], None
    answers = Finding("ok", f"Neo4j answers at {graph.uri}, database {graph.database}")
    return [answers, *check_graph(graph, settings)], graph


def _check_audit_store(
    settings: Settings, stack: ExitStack, graph: Graph | None
) -> Iterator[Finding]:
    try:
        store = stack.enter_context(open_audit(settings))
        if (
            store.is_missing()
            and graph is not None
            and not remembers_project(graph, settings.project)
        ):
            yield not_yet("there is no audit store", "ringfence migrate")
            return
        yield from check_store(store, settings)
        if graph is not None:
            _check_database(graph, store, settings.project)
    except RingfenceError as error:
        yield from_error(error)


def _check_database(graph: Graph, store: Store, project: str) -> None:
    with suppress(WrongVersion):  # a finding of the store's already
        require_sql(store)
        require_same_database(graph, store, project)
