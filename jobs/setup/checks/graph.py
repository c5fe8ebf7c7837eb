"""Whether the graph is as `[graph]` says: constraints, the label, then what its nodes have."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.inspect import count_labels, inspect_label
from ringfence.connector.neo4j.migrate import require_graph
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
from ringfence.jobs.setup.checks.relationships import check_relationships
from ringfence.jobs.setup.finding import Finding, attempt

LABELS_NAMED = 10
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


def check_graph(graph: Graph, settings: Settings) -> Iterator[Finding]:
    """Run every check of the graph; without nodes of the label the others have no subject."""
    yield attempt("the graph has ringfence's constraints", lambda: require_graph(graph))
    mapping = settings.mapping()
    label = mapping.label
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
    if mapping.typed is not None:
        yield from check_labels(graph, settings, mapping.typed, counts)
        return
    subject = LabelInGraph(graph, inspect_label(graph, label), settings)
    yield Finding("ok", f"{subject.view.count} :{label} nodes")
    for check in LABEL_CHECKS:
        yield from check(subject)
