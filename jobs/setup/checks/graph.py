"""Whether the graph is as `[graph]` says, and which rights in it the user lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringfence.connector.neo4j.access.rights import MIGRATE, SHOW_TRANSACTION, WORK
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.inspect import count_labels, inspect_label
from ringfence.connector.neo4j.migrate import is_new, require_graph
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.checks.label import LabelInGraph
from ringfence.jobs.setup.checks.labels import check_labels
from ringfence.jobs.setup.checks.leaks import check_leaking_features
from ringfence.jobs.setup.checks.lost import check_lost_nodes
from ringfence.jobs.setup.checks.memory import check_memory
from ringfence.jobs.setup.checks.nodes import (
    check_classes,
    check_features,
    check_key,
    check_times,
)
from ringfence.jobs.setup.finding import Finding, attempt, not_yet

LABELS_NAMED = 10
A_ROLE = "TO <a role of the user>"


def check_relationships(subject: LabelInGraph) -> Iterator[Finding]:
    """Every configured type connects nodes of the label and has its creation time."""
    kinds = {kind.name: kind for kind in subject.view.relationships}
    there = ", ".join(kinds) or "none"
    if not subject.mapping.relations:
        yield Finding(
            "warning",
            "no relationship type is configured: the network sees no edges",
            f"add [[graph.relationships]]; there are: {there}",
        )
    for wanted in subject.mapping.relations:
        kind = kinds.get(wanted.type)
        if kind is None:
            yield Finding(
                "warning",
                f"no {wanted.type} relationship connects :{subject.view.name} nodes",
                f"correct [[graph.relationships]] type; there are: {there}",
            )
            continue
        on_every = [prop.name for prop in kind.properties if prop.share == 1]
        if wanted.created_at and wanted.created_at not in on_every:
            yield Finding(
                "warning",
                f"not every {wanted.type} has {wanted.created_at}",
                'those without are seen only when the whole graph is read; created_at = "" reads '
                "relationships with their nodes",
            )
        else:
            yield Finding("ok", f"{kind.count} {wanted.type} relationships")


LABEL_CHECKS: tuple[Callable[[LabelInGraph], Iterator[Finding]], ...] = (
    check_key,
    check_features,
    check_classes,
    check_times,
    check_relationships,
    check_lost_nodes,
    check_leaking_features,
    check_memory,
)


def check_rights(graph: Graph, settings: Settings) -> Iterator[Finding]:
    """Name each missing right with the statement that grants it; nothing where none is missing."""
    needed = (*WORK, *MIGRATE) if is_new(graph) else WORK
    for grant in graph.rights.missing(graph.database, needed):
        yield Finding("error", f"the user of Neo4j lacks a right: {grant}", f"{grant} {A_ROLE}")
    if graph.rights.sees_all_transactions(graph.database):
        return
    seconds = settings.engine.unseen_transaction_seconds
    may = "does not say whether" if graph.rights.listed is None else "says that"
    not_ = "" if graph.rights.listed is None else "not "
    yield Finding(
        "warning",
        f"Neo4j {may} the user may {not_}see the open transactions of others: the watermark stays "
        f"{seconds:g} s behind the server's clock, and what commits later than that is found by "
        "counts alone",
        f"GRANT {SHOW_TRANSACTION.grant.format(f'`{graph.database}`')} {A_ROLE}, or [engine] "
        "unseen_transaction_seconds above the longest write transaction there",
    )


def check_graph(graph: Graph, settings: Settings) -> Iterator[Finding]:
    """Run every check of the graph; without nodes of the label the others have no subject."""
    if is_new(graph):
        yield not_yet("the graph has none of ringfence's constraints", "ringfence migrate")
    else:
        yield attempt("the graph has ringfence's constraints", lambda: require_graph(graph))
    yield from check_rights(graph, settings)
    mapping = settings.mapping()
    label = mapping.classified.label
    counts = count_labels(graph)
    if not counts.get(label):
        named = list(counts.items())[:LABELS_NAMED]
        there = ", ".join(f"{name} ({count})" for name, count in named) or "none"
        yield Finding(
            "error",
            f"the graph has no :{label} nodes; labels there are: {there}",
            "correct [graph] label, or: ringfence init",
        )
        return
    if not mapping.features_are_strict:
        yield from check_labels(graph, settings, counts)
        return
    subject = LabelInGraph(graph, inspect_label(graph, label), settings)
    yield Finding("ok", f"{subject.view.count} :{label} nodes")
    for check in LABEL_CHECKS:
        yield from check(subject)
