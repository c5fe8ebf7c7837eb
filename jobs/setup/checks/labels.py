"""Whether the graph is as `[[graph.nodes]]` and `[[graph.relationships]]` say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.connector.mapping import GraphMapping, NodeMapping, RelationMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.read.counts import count_relation
from ringfence.connector.neo4j.sample import (
    LabelSample,
    count_distinct,
    joined_labels,
    sample_label,
    sample_relationship,
    server_seconds,
)
from ringfence.connector.neo4j.times import VALUE_TYPE
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.checks.classes import check_known_classes
from ringfence.jobs.setup.checks.columns import check_columns
from ringfence.jobs.setup.checks.leaks import (
    check_leaking_columns,
    check_leaking_relations,
    check_telling_neighbours,
)
from ringfence.jobs.setup.checks.lost import lost_without
from ringfence.jobs.setup.checks.memory import check_typed_memory
from ringfence.jobs.setup.checks.relation_columns import check_relation_columns
from ringfence.jobs.setup.finding import Finding
from ringfence.jobs.setup.proposal.arrival import is_creation_time

PROPERTIES_NAMED = 12


@dataclass(frozen=True, slots=True)
class LabelsInGraph:
    """The configured labels as they are in the live graph; a label without nodes has no sample."""

    graph: Graph
    settings: Settings
    mapping: GraphMapping
    samples: dict[str, LabelSample]


def check_labels(graph: Graph, settings: Settings, counts: dict[str, int]) -> Iterator[Finding]:
    """Run every check of `[[graph.nodes]]`; the classified label has nodes."""
    mapping = settings.mapping()
    samples = {
        node.label: sample_label(graph, node.label, counts[node.label])
        for node in mapping.nodes
        if counts.get(node.label)
    }
    subject = LabelsInGraph(graph, settings, mapping, samples)
    for node in mapping.nodes:
        yield from _check_label(subject, node)
    yield from _check_some_column(subject)
    yield from check_known_classes(graph, settings)
    yield from _check_arrival(subject)
    classified = samples[mapping.classified.label]
    yield from check_leaking_columns(settings, mapping, classified)
    for relation in mapping.relations:
        yield from _check_relation(subject, relation)
    yield from check_leaking_relations(graph, mapping, classified)
    yield from check_telling_neighbours(graph, mapping, classified)
    yield from check_typed_memory(settings, mapping, samples, _count_relations(subject))


def _count_relations(subject: LabelsInGraph) -> list[int]:
    mapping = subject.mapping
    return [count_relation(subject.graph, mapping, relation) for relation in mapping.relations]


def _check_label(subject: LabelsInGraph, node: NodeMapping) -> Iterator[Finding]:
    sample = subject.samples.get(node.label)
    if sample is None:
        yield Finding(
            "warning",
            f"no node carries the context label {node.label}: it brings nothing",
            f"take the [[graph.nodes]] of {node.label} and its relationships out, or load it",
        )
        return
    yield Finding("ok", f"{sample.count} :{node.label} nodes")
    yield from _check_key(subject, node, sample)
    yield from check_columns(node, sample)


def _check_key(subject: LabelsInGraph, node: NodeMapping, sample: LabelSample) -> Iterator[Finding]:
    if node.key not in sample.properties:
        there = ", ".join(list(sample.properties)[:PROPERTIES_NAMED])
        yield Finding(
            "error",
            f"no sampled :{node.label} node has the property {node.key}; there are: {there}",
            f"correct the key of {node.label} in [[graph.nodes]]",
        )
        return
    yield from lost_without(sample, node.key, "key")
    if node.key in sample.unique:
        yield Finding("ok", f"the key {node.key} of {node.label} is unique")
        return
    exact = count_distinct(subject.graph, node.label, node.key, sample.count)
    if exact is not None and exact[0] != exact[1]:
        yield Finding(
            "error",
            f"the key {node.key} of {node.label} is not unique: {exact[0]} nodes have "
            f"{exact[1]} values",
            f"choose another key of {node.label}, or merge the nodes; a set belongs to one node",
        )
        return
    yield Finding(
        "warning",
        f"the key {node.key} of {node.label} has no unique constraint",
        "ringfence migrate creates it ([graph] manage_indexes = true)",
    )


def _check_some_column(subject: LabelsInGraph) -> Iterator[Finding]:
    mapping = subject.mapping
    if not any(node.columns for node in mapping.nodes) and not mapping.relation_columns:
        yield Finding(
            "error",
            "no label has a column: the network would see nothing but relationships",
            "name properties in columns of [[graph.nodes]] or [[graph.relationships]]; ringfence "
            "init --force proposes them",
        )


def _check_arrival(subject: LabelsInGraph) -> Iterator[Finding]:
    """How new nodes are found, and whether a creation time is one."""
    node = subject.mapping.classified
    sample = subject.samples[node.label]
    if not node.created_at:
        yield Finding(
            "ok",
            f"arrival: new nodes are keys not yet known, by a scan of {sample.count:,} keys per "
            "run; a node's time is that of the run that first saw it",
        )
        return
    property_ = sample.properties.get(node.created_at)
    expected = VALUE_TYPE[subject.mapping.time_kind]
    if property_ is None:
        yield Finding(
            "error",
            f"no sampled :{node.label} node has {node.created_at}",
            f'correct created_at of {node.label}, or created_at = "": keys tell what is new',
        )
        return
    yield from lost_without(sample, node.created_at, "created_at")
    others = {kind: n for kind, n in property_.types.items() if kind != expected}
    if others:
        listed = ", ".join(f"{n} {kind}" for kind, n in others.items())
        yield Finding(
            "error",
            f"{node.label}.{node.created_at} holds {listed} in {property_.sampled} sampled nodes; "
            f"{expected} is needed",
            f"convert them, or set [graph] time_kind ({', '.join(VALUE_TYPE)})",
        )
    elif not is_creation_time(property_, server_seconds(subject.graph)):
        yield Finding(
            "warning",
            f"{node.label}.{node.created_at} is far from the server's clock: a business date, "
            "which later nodes may carry too",
            f'created_at = "" for {node.label}, and {node.created_at} among its columns',
        )
    else:
        yield Finding("ok", f"arrival: new nodes by {node.created_at}, near the server's clock")


def _check_relation(subject: LabelsInGraph, relation: RelationMapping) -> Iterator[Finding]:
    drawn = subject.mapping.describe(relation)
    count = count_relation(subject.graph, subject.mapping, relation)
    if not count:
        joins = joined_labels(subject.graph, relation.type)
        there = (
            f"{relation.type} joins {', '.join(joins)}"
            if joins
            else (f"there is no relationship of the type {relation.type}")
        )
        yield Finding(
            "error",
            f"the graph has no {drawn}; {there}",
            f"correct from and to of [[graph.relationships]] {relation.type}, or take it out",
        )
        return
    yield Finding("ok", f"{count} {drawn}")
    yield from check_relation_columns(subject.graph, subject.mapping, relation)
    if relation.created_at:
        source, target = (
            subject.mapping.nodes[at].label for at in (relation.source, relation.target)
        )
        sampled = sample_relationship(subject.graph, source, relation.type, target)
        share = sampled[relation.created_at].share if relation.created_at in sampled else 0.0
        if share < 1:
            yield Finding(
                "warning",
                f"{1 - share:.0%} of the sampled {drawn} have no {relation.created_at}",
                'created_at = "" reads the type with its nodes',
            )
