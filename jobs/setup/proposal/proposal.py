"""A whole proposal: the classified label and its class, columns, context, arrival; with reasons."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import TimeKind
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.inspect import count_labels
from ringfence.connector.neo4j.sample import LabelSample, sample_label, server_seconds
from ringfence.jobs.setup.proposal.arrival import Arrival, propose_arrival
from ringfence.jobs.setup.proposal.choice import Choice, LeftOut
from ringfence.jobs.setup.proposal.classes import ClassCandidate, are_close, rank_classes
from ringfence.jobs.setup.proposal.columns import (
    ColumnProposal,
    propose_columns,
    vector_property,
)
from ringfence.jobs.setup.proposal.context import (
    NodeProposal,
    RelationProposal,
    propose_context,
    propose_relations,
)
from ringfence.jobs.setup.proposal.keys import propose_key
from ringfence.jobs.setup.proposal.rule import propose_rule

LABELS_INSPECTED = 8
LABELS_NAMED = 10
SAMPLED_AT_FIRST = 500  # nodes per label, to find the one to classify

Ask = Callable[[str, Sequence[str], str], str]
"""Asks a person: the question, the answers to choose from, the proposed one."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Everything that `[graph]` needs, each with its reason.

    `features` is set where one label with a vector of numbers says it all: the one-label form.
    """

    label: Choice
    key: Choice
    class_property: Choice
    candidates: tuple[ClassCandidate, ...]
    arrival: Choice
    created_at: str | None
    time_kind: TimeKind
    features: Choice | None
    columns: tuple[ColumnProposal, ...]
    context: tuple[NodeProposal, ...]
    relations: tuple[RelationProposal, ...]
    left_out: tuple[LeftOut, ...]
    rule: Choice

    @property
    def open_points(self) -> list[str]:
        """What a person should check first."""
        named = {
            "label": self.label,
            "key": self.key,
            "class_property": self.class_property,
            "created_at": self.arrival,
        }
        points = [name for name, choice in named.items() if not choice.sure]
        points += [f"relationship {one.type}" for one in self.relations if "CHECK" in one.why]
        return points + [one.name for one in self.left_out if one.why.startswith("CHECK")]


def propose(
    graph: Graph,
    label: str | None = None,
    class_property: str | None = None,
    ask: Ask | None = None,
) -> Proposal:
    """Propose settings for `label`, or for the label with the likeliest class."""
    counts = {name: count for name, count in count_labels(graph).items() if count}
    if not counts:
        raise GraphError(
            found="the graph is empty",
            needed="a graph with nodes",
            next_step="ringfence demo   (shows everything on a sample graph), or load your own",
        )
    if label is not None and label not in counts:
        raise GraphError(
            found=f"the graph has no :{label} nodes",
            needed="a label with nodes: " + ", ".join(list(counts)[:LABELS_NAMED]),
            next_step=f"ringfence init --label {shlex.quote(next(iter(counts)))}",
        )
    chosen = _choose_label(graph, counts, label, ask)
    name = str(chosen.value)
    sample = sample_label(graph, name, counts[name])
    candidates = rank_classes(sample)
    class_ = _choose_class(name, sample, candidates, class_property, ask)
    found = _complete(graph, counts, chosen, sample, candidates, class_)
    return found if ask is None else replace(found, relations=ask_when_set(found.relations, ask))


def _complete(
    graph: Graph,
    counts: dict[str, int],
    label: Choice,
    sample: LabelSample,
    candidates: list[ClassCandidate],
    class_: Choice,
) -> Proposal:
    """All that follows from the label and its class."""
    key = propose_key(graph, sample)
    if key is None:
        raise GraphError(
            found=f"no property of :{sample.name} is there and different in every node",
            needed="a unique key: a prediction set belongs to one node",
            next_step=f"give the nodes one, or: ringfence init --label {_another(counts, sample)}",
        )
    now = server_seconds(graph)
    arrival = propose_arrival(list(sample.properties.values()), now)
    known = sample.properties[str(class_.value)].values
    classes = [None if value is None else str(value) for value in known]
    taken = {str(class_.value): "class", str(key.value): "key"}
    if arrival.created_at:
        taken[arrival.created_at] = "created_at"
    columns, left = propose_columns(sample, taken, classes)
    around = propose_context(graph, sample, counts)
    labels = {sample.name, *(node.label for node in around.nodes)}
    kind = arrival.time_kind if arrival.created_at else None
    relations = propose_relations(graph, [sample, *around.samples], labels, classes, kind, now)
    distant = [name for name in counts if name not in labels]
    said = {one.name for one in around.left_out}
    left += around.left_out
    left += [
        LeftOut(name, f"not within two hops of {sample.name}")
        for name in distant
        if name not in said
    ]
    features = _one_vector(sample, around.nodes, arrival)
    return Proposal(
        label, key, class_, tuple(candidates), arrival.choice, arrival.created_at,
        arrival.time_kind, features, tuple(columns), tuple(around.nodes), tuple(relations),
        tuple(left), propose_rule(sample.degrees),
    )  # fmt: skip


def ask_when_set(relations: tuple[RelationProposal, ...], ask: Ask) -> tuple[RelationProposal, ...]:
    """Ask of each type that may come with the class when it is set."""
    asked = []
    for one in relations:
        if one.after_evaluation:
            question = f"Is {one.type} set before a node is evaluated, or after? ({one.why})"
            answer = ask(question, ["before", "after"], "after")
            one = replace(one, after_evaluation=answer == "after", why=f"set {answer}, by hand")
        asked.append(one)
    return tuple(asked)


def _one_vector(
    sample: LabelSample, context: Sequence[NodeProposal], arrival: Arrival
) -> Choice | None:
    """One label with a vector of numbers and creation times needs no more than `[graph]`."""
    vector = vector_property(sample)
    if vector is None or context or not arrival.created_at:
        return None
    (length,) = vector.sizes
    return Choice(vector.name, f"lists of {length} numbers in {vector.share:.0%} of the nodes")


def _choose_label(
    graph: Graph, counts: dict[str, int], label: str | None, ask: Ask | None
) -> Choice:
    if label is not None:
        return Choice(label, f"as asked for; {counts[label]} nodes")
    ranked = []
    for name in list(counts)[:LABELS_INSPECTED]:
        candidates = rank_classes(sample_label(graph, name, counts[name], SAMPLED_AT_FIRST))
        if candidates:
            ranked.append((candidates[0].points, counts[name], name, candidates[0].name))
    ranked.sort(reverse=True)
    if not ranked:
        raise GraphError(
            found="no property of any label looks like a class: 2 to 50 values, each repeated",
            needed="a property with the known class of some nodes",
            next_step="ringfence init --label LABEL --class-property PROPERTY",
        )
    _, count, name, class_ = ranked[0]
    others = ", ".join(f"{other} ({property_})" for _, _, other, property_ in ranked[1:4])
    why = f"{count} nodes, the likeliest class: {class_}" + (f"; then {others}" if others else "")
    sure = len(ranked) == 1 or ranked[0][0] - ranked[1][0] > 0.5
    if ask is not None:
        answer = ask("Which label is to be predicted?", [one[2] for one in ranked], name)
        return Choice(answer, "chosen by hand")
    return Choice(name, why, sure)


def _choose_class(
    label: str,
    sample: LabelSample,
    candidates: list[ClassCandidate],
    wanted: str | None,
    ask: Ask | None,
) -> Choice:
    if wanted is not None:
        if wanted not in sample.properties:
            raise GraphError(
                found=f"no :{label} node has the property {wanted}",
                needed="one of: " + ", ".join(sample.properties),
                next_step=f"ringfence init --label {shlex.quote(label)}",
            )
        return Choice(wanted, "as asked for")
    if not candidates:
        raise GraphError(
            found=f"no property of :{label} looks like a class: 2 to 50 values, each repeated, "
            "none in nearly all nodes",
            needed="a property with the known class of some nodes; there are: "
            + ", ".join(sample.properties),
            next_step=f"ringfence init --label {shlex.quote(label)} --class-property PROPERTY",
        )
    best = candidates[0]
    if ask is not None:
        names = [one.name for one in candidates]
        return Choice(ask("Which property is the class?", names, best.name), "chosen by hand")
    if not are_close(candidates):
        return Choice(best.name, best.why)
    second = candidates[1]
    why = f"{best.why}; {second.name} is close ({second.why})"
    return Choice(best.name, why, sure=False)


def _another(counts: dict[str, int], sample: LabelSample) -> str:
    return shlex.quote(next((name for name in counts if name != sample.name), sample.name))
