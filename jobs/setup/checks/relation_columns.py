"""Whether the columns of relationships are there, of a kind that an encoder takes, and no leak."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.mapping import ColumnMapping, GraphMapping, RelationMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.sample import RelationSample, sample_relation
from ringfence.jobs.setup.finding import Finding
from ringfence.jobs.setup.proposal.relation_columns import (
    Triple,
    find_relation_leaks,
    propose_relation_columns,
)
from ringfence.models.encoders import EncoderRefused, infer_kind
from ringfence.models.encoders.registry import check_options

PROPERTIES_NAMED = 12


def check_relation_columns(
    graph: Graph, mapping: GraphMapping, relation: RelationMapping
) -> Iterator[Finding]:
    """Every column of a relation is there, and its values can be fed; what is not used is named."""
    triple = (
        mapping.nodes[relation.source].label,
        relation.type,
        mapping.nodes[relation.target].label,
    )
    sample = sample_relation(graph, *triple, mapping.class_property)
    yield from _list_unused(mapping, relation, triple, sample)
    used = []
    for column in relation.columns:
        findings = list(_check_column(mapping.describe(relation), relation, column, sample))
        yield from findings
        if all(finding.level == "ok" for finding in findings):
            used.append(column.name)
    if used:
        yield Finding("ok", f"columns of {mapping.describe(relation)}: {', '.join(used)}")
    taken = {relation.created_at} if relation.created_at else set()
    leaks = find_relation_leaks(sample, triple, mapping.classified.label, taken)
    for name, leak in ((name, leaks[name]) for name in used if name in leaks):
        yield Finding(
            "warning",
            f"{mapping.describe(relation)}.{name}: {leak.removeprefix('CHECK: ')}",
            f"take {name} out of its columns, unless newcomers have it before their class is known",
        )


def _list_unused(
    mapping: GraphMapping, relation: RelationMapping, triple: Triple, sample: RelationSample
) -> Iterator[Finding]:
    """The properties of a relation that are no columns, each with what it could be or why not."""
    taken = {relation.created_at: "creation time"} if relation.created_at else {}
    usable, left = propose_relation_columns(sample, triple, mapping.classified.label, taken)
    unused = [f"{column.name} ({column.kind})" for column in usable
              if column.name not in relation.column_names]  # fmt: skip
    drawn, names = mapping.describe(relation), ", ".join(unused[:PROPERTIES_NAMED])
    if unused:
        yield Finding(
            "ok",
            f"{drawn} has more that could be columns: {names}; to use it: columns in "
            f"[[graph.relationships]] {relation.type}",
        )
    for each in left:
        if each.name.removeprefix(f"{relation.type}.") not in relation.column_names:
            yield Finding("ok", f"{each.name} is not used: {each.why}")


def _check_column(
    drawn: str, relation: RelationMapping, column: ColumnMapping, sample: RelationSample
) -> Iterator[Finding]:
    property_ = sample.properties.get(column.name)
    if property_ is None:
        there = ", ".join(list(sample.properties)[:PROPERTIES_NAMED]) or "none"
        yield Finding(
            "error",
            f"no sampled {drawn} has the column {column.name}; there are: {there}",
            f"take {column.name} out of the columns of {relation.type}",
        )
        return
    if column.kind:
        try:
            check_options(column.kind, column.options)
        except EncoderRefused as error:
            fix = f"correct its columns in [[graph.relationships]] {relation.type}"
            yield Finding("error", f"{drawn}.{column.name}: {error}", fix)
        return
    proposal = infer_kind(property_.values)
    if not proposal.usable:
        reason = proposal.reason.replace("node", "relationship")
        yield Finding(
            "warning",
            f"{drawn}.{column.name} is of little use: {reason}",
            f"take it out of the columns of {relation.type}, or give it a kind",
        )
