"""Which labels and relationship types surround the classified label, within two hops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ringfence.connector.mapping import TimeKind
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.sample import (
    LabelSample,
    SampledRelation,
    sample_label,
    sample_relationship,
)
from ringfence.jobs.setup.proposal.arrival import find_relationship_time
from ringfence.jobs.setup.proposal.choice import Choice, LeftOut
from ringfence.jobs.setup.proposal.columns import ColumnProposal, propose_columns
from ringfence.jobs.setup.proposal.keys import propose_key
from ringfence.jobs.setup.proposal.leaks import find_set_with_class, find_telling_presence

MAX_LABELS = 16  # that are looked at around the classified one
SAMPLED_CONTEXT_NODES = 1_000


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
    found = Surroundings([], [], [])
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
            if len(found.nodes) >= MAX_LABELS:
                found.left_out.append(LeftOut(name, f"{MAX_LABELS} labels are looked at"))
                continue
            sample = sample_label(graph, name, counts[name], SAMPLED_CONTEXT_NODES)
            key = propose_key(graph, sample)
            if key is None:
                found.left_out.append(LeftOut(name, "no property is unique in every node"))
                continue
            columns, left = propose_columns(sample, {str(key.value): "key"})
            found.nodes.append(NodeProposal(name, key, tuple(columns), counts[name], hop))
            found.left_out += left
            found.samples.append(sample)
            border.append(sample)
    return found


def propose_relations(
    graph: Graph,
    samples: Sequence[LabelSample],
    labels: set[str],
    classes: Sequence[str | None],
    kind: TimeKind | None,
    now_seconds: int,
) -> list[RelationProposal]:
    """Return the relationship types between proposed labels, each once; the classified label first.

    `classes` are those of the nodes of the first sample. `kind` is the kind of creation times,
    None where there are none.
    """
    relations: dict[tuple[str, str, str], RelationProposal] = {}
    for place, sample in enumerate(samples):
        for one in sample.relations:
            triple = _triple(sample.name, one)
            if one.label not in labels or triple in relations:
                continue
            time = None
            if kind is not None:
                time = find_relationship_time(
                    sample_relationship(graph, *triple), kind, now_seconds
                )
            why = f"{one.share:.0%} of the sampled {sample.name} nodes have it"
            leak = find_presence_leak(one, classes) if place == 0 else None
            relations[triple] = RelationProposal(
                *triple, time, f"CHECK: {leak}" if leak else why, after_evaluation=leak is not None
            )
    return list(relations.values())


def _triple(label: str, one: SampledRelation) -> tuple[str, str, str]:
    return (label, one.type, one.label) if one.outgoing else (one.label, one.type, label)


def find_presence_leak(one: SampledRelation, classes: Sequence[str | None]) -> str | None:
    """Return why a relationship gives the class away, None where it doesn't."""
    flags = [True if flag else None for flag in one.has]
    checks: tuple[Callable[[], str | None], ...] = (
        lambda: find_set_with_class(flags, classes, "there"),
        lambda: find_telling_presence(one.has, classes),
    )
    return next((said for check in checks if (said := check())), None)
