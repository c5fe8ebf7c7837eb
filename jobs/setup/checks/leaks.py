"""Columns and relationships that leak the class; new nodes don't have them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from ringfence.connector.mapping import GraphMapping, RelationMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.sample import (
    LabelSample,
    SampledRelation,
    sample_label,
    server_seconds,
)
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.checks.label import LabelInGraph
from ringfence.jobs.setup.finding import Finding
from ringfence.jobs.setup.proposal.columns import usable_values
from ringfence.jobs.setup.proposal.leaks import find_leaking_columns
from ringfence.jobs.setup.proposal.neighbour_leaks import (
    classes_of,
    find_neighbour_leaks,
    find_presence_leak,
    find_time,
    order_of,
)


def check_leaking_features(subject: LabelInGraph) -> Iterator[Finding]:
    """Numeric properties of the one-label form."""
    mapping = subject.mapping
    if mapping.features_are_list:
        return
    sample = sample_label(subject.graph, mapping.classified.label, subject.view.count)
    classes = classes_of(sample, mapping.class_property)
    names = mapping.classified.column_names
    for name, leak in _leaks(sample, names, classes, _taken(mapping)).items():
        yield Finding("error", f"{name} is {leak}", f'take "{name}" out of [graph] features')


def check_leaking_columns(
    settings: Settings, mapping: GraphMapping, sample: LabelSample
) -> Iterator[Finding]:
    """Columns of the classified label; one that `[graph.columns]` names was chosen by a person."""
    classes = classes_of(sample, mapping.class_property)
    named = settings.graph.columns.get(sample.name, {})
    names = mapping.classified.column_names
    for name, leak in _leaks(sample, names, classes, _taken(mapping)).items():
        yield Finding(
            "warning" if name in named else "error",
            f"{sample.name}.{name}: {leak}",
            f'[graph.columns.{sample.name}]  {name} = "leave"   (or "use", if newcomers have it '
            "before their class is known)",
        )


def _taken(mapping: GraphMapping) -> set[str]:
    """Properties with another use than that of a column."""
    node = mapping.classified
    return {mapping.class_property, node.key} | ({node.created_at} if node.created_at else set())


def check_telling_neighbours(
    graph: Graph, mapping: GraphMapping, sample: LabelSample
) -> Iterator[Finding]:
    """Relationship types at whose other end the class stands in other words."""
    time = find_time(sample, mapping.classified.created_at, server_seconds(graph))
    told = find_neighbour_leaks(graph, sample, mapping.class_property, time)
    for relation in mapping.relations:
        for sampled in sample.relations:
            key = (sampled.type, sampled.outgoing, sampled.label)
            if relation.after_evaluation or not _is_same(mapping, relation, sampled):
                continue
            if key in told:
                yield Finding(
                    "warning",
                    f"{mapping.describe(relation)}: {told[key]}",
                    f"[[graph.relationships]] {relation.type}: after_evaluation = true, unless new "
                    "nodes have it before their class is known",
                )


def check_leaking_relations(
    graph: Graph, mapping: GraphMapping, sample: LabelSample
) -> Iterator[Finding]:
    """Relationship types whose presence or number comes with the class, or all but names one."""
    classes = classes_of(sample, mapping.class_property)
    time = find_time(sample, mapping.classified.created_at, server_seconds(graph))
    order = order_of(sample, time)
    for relation in mapping.relations:
        for sampled in sample.relations:
            if relation.after_evaluation or not _is_same(mapping, relation, sampled):
                continue
            if leak := find_presence_leak(sampled, classes, order):
                yield Finding(
                    "error",
                    f"{mapping.describe(relation)} gives the class away: {leak}",
                    f"[[graph.relationships]] {relation.type}: after_evaluation = true, or take "
                    "the type out",
                )


def _leaks(
    sample: LabelSample,
    names: Sequence[str],
    classes: list[str | None],
    taken: Container[str],
) -> dict[str, str]:
    """The leaks among the named columns, judged beside all that could be columns, as in `init`."""
    values = usable_values(sample, taken)
    values |= {name: sample.properties[name].values for name in names if name in sample.properties}
    leaks = find_leaking_columns(values, classes)
    return {name: leaks[name] for name in names if name in leaks}


def _is_same(mapping: GraphMapping, relation: RelationMapping, sampled: SampledRelation) -> bool:
    ends = (relation.source, relation.target)
    mine, other = ends if sampled.outgoing else ends[::-1]
    same_ends = mine == 0 and mapping.nodes[other].label == sampled.label
    return same_ends and sampled.type == relation.type
