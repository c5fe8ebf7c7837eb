"""Which labels and relationship types surround the classified label, within two hops."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ringfence.connector.mapping import TimeKind
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.sample import (
    LabelSample,
    SampledRelation,
    sample_label,
    sample_relation,
    sample_relationship,
)
from ringfence.jobs.setup.proposal.arrival import find_relationship_time
from ringfence.jobs.setup.proposal.choice import Choice, LeftOut
from ringfence.jobs.setup.proposal.columns import (
    ColumnProposal,
    propose_columns,
    propose_key_column,
)
from ringfence.jobs.setup.proposal.keys import propose_key
from ringfence.jobs.setup.proposal.neighbour_leaks import RelationKey, find_presence_leak
from ringfence.jobs.setup.proposal.relation_columns import (
    leave_all_out,
    propose_relation_columns,
)

MAX_LABELS = 16  # that are looked at around the classified one
SAMPLED_CONTEXT_NODES = 1_000
GIVE_KEY = "; to use it: give the nodes a unique property, then: ringfence init --force"
CUT = "the relationships are cut where nodes are evaluated: they may come with the class"


@dataclass(frozen=True, slots=True)
class NodeProposal:
    """A label with its key, columns and hops away from the classified label."""

    label: str
    key: Choice
    columns: tuple[ColumnProposal, ...]
    count: int
    hops: int


@dataclass(frozen=True, slots=True)
class RelationProposal:
    """A relationship type between two proposed labels."""

    source: str
    type: str
    target: str
    created_at: str | None
    why: str
    after_evaluation: bool = False
    columns: tuple[ColumnProposal, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(slots=True)
class Surroundings:
    """What was found around the classified label."""

    nodes: list[NodeProposal]
    samples: list[LabelSample]
    left_out: list[LeftOut]


def propose_context(
    graph: Graph, classified: LabelSample, counts: dict[str, int], hops: int = 2
) -> Surroundings:
    """Return the labels within `hops` of the classified one that have a key, and their columns."""
    surroundings = Surroundings([], [], [])
    known = {classified.name}
    border = [classified]
    for hop in range(1, hops + 1):
        names = dict.fromkeys(
            relation.label
            for sample in border
            for relation in sample.relations
            if relation.label not in known and relation.label in counts
        )
        border = []
        for name in names:
            known.add(name)
            if len(surroundings.nodes) >= MAX_LABELS:
                surroundings.left_out.append(LeftOut(name, f"{MAX_LABELS} labels are looked at"))
                continue
            sample = sample_label(graph, name, counts[name], SAMPLED_CONTEXT_NODES)
            key = propose_key(graph, sample)
            if key is None:
                surroundings.left_out.append(
                    LeftOut(name, f"no property is unique in every node{GIVE_KEY}")
                )
                continue
            columns, left = propose_columns(sample, {str(key.value): "key"})
            if set(sample.properties) == {str(key.value)}:
                columns = propose_key_column(sample, str(key.value))
            surroundings.nodes.append(NodeProposal(name, key, tuple(columns), counts[name], hop))
            surroundings.left_out += left
            surroundings.samples.append(sample)
            border.append(sample)
    return surroundings


def propose_relations(
    graph: Graph,
    samples: Sequence[LabelSample],
    labels: set[str],
    classes: Sequence[str | None],
    class_property: str,
    kind: TimeKind | None,
    now_seconds: int,
    telling: Mapping[RelationKey, str] = MappingProxyType({}),
    order: Sequence[Any] | None = None,
) -> list[RelationProposal]:
    """Return the relationship types between proposed labels, each once; the classified label first.

    `classes` are those of the nodes of the first sample. `kind` is the kind of creation times,
    None where there are none. `telling` are the types of the first sample at whose other end the
    class stands. `order` has the times of its nodes.
    """
    relations: dict[tuple[str, str, str], RelationProposal] = {}
    for place, sample in enumerate(samples):
        for relation in sample.relations:
            triple = _triple(sample.name, relation)
            if relation.label not in labels or triple in relations:
                continue
            time = None
            if kind is not None:
                time = find_relationship_time(
                    sample_relationship(graph, *triple), kind, now_seconds
                )
            why = f"{relation.share:.0%} of the sampled {sample.name} nodes have it"
            leak = find_presence_leak(relation, classes, order) if place == 0 else None
            if place == 0 and leak is None:
                leak = telling.get((relation.type, relation.outgoing, relation.label))
            sampled = sample_relation(graph, *triple, class_property)
            if leak:
                used: list[ColumnProposal] = []
                left = leave_all_out(sampled, relation.type, CUT)
            else:
                taken = {time: "creation time"} if time else {}
                used, left = propose_relation_columns(sampled, triple, samples[0].name, taken)
            relations[triple] = RelationProposal(
                *triple, time, f"CHECK: {leak}" if leak else why, leak is not None,
                tuple(used), tuple(left),
            )  # fmt: skip
    return list(relations.values())


def list_unused_relations(
    samples: Sequence[LabelSample], labels: Container[str], left_out: Mapping[str, str]
) -> list[LeftOut]:
    """Return the relationship types that lead to a label that is not proposed, each once."""
    unused: dict[tuple[str, str, str], LeftOut] = {}
    for sample in samples:
        for relation in sample.relations:
            if relation.label in labels:
                continue
            source, type_, target = _triple(sample.name, relation)
            why = left_out.get(relation.label, "it is not proposed")
            unused.setdefault(
                (source, type_, target),
                LeftOut(
                    f"relationship {type_} ({source} to {target})",
                    f"{relation.label} is left out: {why}; to use it: [[graph.nodes]] for "
                    f"{relation.label} and [[graph.relationships]] for {type_}",
                ),
            )
    return list(unused.values())


def _triple(label: str, relation: SampledRelation) -> tuple[str, str, str]:
    return (
        (label, relation.type, relation.label)
        if relation.outgoing
        else (relation.label, relation.type, label)
    )
