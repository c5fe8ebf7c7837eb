"""A whole proposal: the classified label and its class, columns, context, arrival; with reasons."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import TimeKind
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.inspect import count_labels
from ringfence.connector.neo4j.sample import (
    LabelSample,
    count_nodes,
    find_rare_neighbours,
    sample_label,
    server_seconds,
)
from ringfence.jobs.setup.proposal.arrival import Arrival, propose_arrival
from ringfence.jobs.setup.proposal.choice import Choice, LeftOut
from ringfence.jobs.setup.proposal.classes import (
    ClassCandidate,
    are_close,
    doubt_class,
    rank_classes,
)
from ringfence.jobs.setup.proposal.columns import (
    ColumnProposal,
    propose_columns,
    vector_property,
)
from ringfence.jobs.setup.proposal.context import (
    NodeProposal,
    RelationProposal,
    list_unused_relations,
    propose_context,
    propose_relations,
)
from ringfence.jobs.setup.proposal.keys import propose_key
from ringfence.jobs.setup.proposal.label_delay import NOT_TOLD, propose_label_delay
from ringfence.jobs.setup.proposal.neighbour_leaks import (
    find_neighbour_leaks,
    find_time,
    order_of,
)
from ringfence.jobs.setup.proposal.promise import MARGINAL, propose_promise, propose_rule

LABELS_INSPECTED = 8
LABELS_NAMED = 10
UMBRELLA = "every node carries it beside a label of its own; to classify it: ringfence init --label"
SAMPLED_AT_FIRST = 500  # nodes per label, to find the one to classify

Ask = Callable[[str, Sequence[str], str], str]
"""Prompts a person: the question, the answers to choose from, the proposed one."""


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
    label_delay_days: Choice = NOT_TOLD
    promise: Choice = MARGINAL

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
        points += [
            f"relationship {relation.type}"
            for relation in self.relations
            if "CHECK" in relation.why
        ]
        return points + [column.name for column in self.left_out if column.why.startswith("CHECK")]


def propose(
    graph: Graph,
    label: str | None = None,
    class_property: str | None = None,
    ask: Ask | None = None,
) -> Proposal:
    """Propose settings for `label`, or for the label with the likeliest class."""
    counts = {name: count for name, count in count_labels(graph).items() if count}
    umbrellas = [name for name in find_umbrellas(graph, counts) if name != label]
    counts = {name: count for name, count in counts.items() if name not in umbrellas}
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
    chosen, sample, key = _choose_label_with_key(graph, counts, label, ask)
    candidates = rank_classes(sample)
    class_ = _choose_class(sample.name, sample, candidates, class_property, ask)
    proposal = _complete(graph, counts, chosen, sample, key, candidates, class_, umbrellas)
    return (
        proposal
        if ask is None
        else replace(proposal, relations=ask_when_set(proposal.relations, ask))
    )


def _complete(
    graph: Graph,
    counts: dict[str, int],
    label: Choice,
    sample: LabelSample,
    key: Choice,
    candidates: list[ClassCandidate],
    class_: Choice,
    umbrellas: Sequence[str],
) -> Proposal:
    """All that follows from the label and its class."""
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
    time = find_time(sample, arrival.created_at, now)
    telling = find_neighbour_leaks(graph, sample, str(class_.value), time)
    samples = [sample, *around.samples]
    relations = propose_relations(
        graph, samples, labels, classes, str(class_.value), kind, now, telling,
        order_of(sample, time),
    )  # fmt: skip
    left += around.left_out
    left += [LeftOut(name, UMBRELLA) for name in umbrellas]
    left += _explain_distant(graph, sample, counts, labels, left)
    left += list_unused_relations(samples, labels, {column.name: column.why for column in left})
    features = _one_vector(sample, around.nodes, arrival)
    left += relation_properties_left_out(relations, one_label=features is not None)
    return Proposal(
        label, key, class_, tuple(candidates), arrival.choice, arrival.created_at,
        arrival.time_kind, features, tuple(columns), tuple(around.nodes), tuple(relations),
        tuple(left), propose_rule(sample.degrees),
        propose_label_delay(sample, str(class_.value), arrival),
        propose_promise(classes, sample.count),
    )  # fmt: skip


def find_umbrellas(graph: Graph, counts: dict[str, int]) -> list[str]:
    """Return labels that every node carries beside another label of its own."""
    everything = count_nodes(graph)
    return [
        name
        for name, count in counts.items()
        if count == everything and sum(counts.values()) - count >= everything
    ]


def _explain_distant(
    graph: Graph,
    sample: LabelSample,
    counts: dict[str, int],
    labels: set[str],
    left: Sequence[LeftOut],
) -> list[LeftOut]:
    """Labels that are not proposed and of which nothing was said yet, with the reason."""
    said = {column.name for column in left}
    distant = [name for name in counts if name not in labels and name not in said]
    rare = find_rare_neighbours(graph, sample.name, distant)
    return [
        LeftOut(
            name,
            f"one hop away by {rare[name]}, which none of the {len(sample.ids):,} sampled nodes "
            f"has; to use it: [[graph.nodes]] for {name} and [[graph.relationships]] for "
            f"{rare[name]}"
            if name in rare
            else "no sampled relationship leads to it within two hops",
        )
        for name in distant
    ]


def relation_properties_left_out(
    relations: Sequence[RelationProposal], one_label: bool
) -> list[LeftOut]:
    """Return the properties of relationships that are not used; one label with a vector uses none.

    They need [[graph.nodes]], which says the same with a column of kind vector.
    """
    why = "columns of relationships need [[graph.nodes]] (docs/your-own-graph.md)"
    unused = [
        LeftOut(f"{relation.type}.{column.name}", why)
        for relation in relations
        for column in (relation.columns if one_label else ())
    ]
    return [*unused, *(left for relation in relations for left in relation.left_out)]


def ask_when_set(relations: tuple[RelationProposal, ...], ask: Ask) -> tuple[RelationProposal, ...]:
    """Ask of each type that may come with the class when it is set."""
    asked = []
    for relation in relations:
        if relation.after_evaluation:
            question = (
                f"Is {relation.type} set before a node is evaluated, or after? ({relation.why})"
            )
            answer = ask(question, ["before", "after"], "after")
            relation = replace(
                relation, after_evaluation=answer == "after", why=f"set {answer}, by hand"
            )
        asked.append(relation)
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


def _choose_label_with_key(
    graph: Graph, counts: dict[str, int], label: str | None, ask: Ask | None
) -> tuple[Choice, LabelSample, Choice]:
    """The label, its sample and its key; of labels that nobody named the likeliest with a key."""
    choices = _rank_labels(graph, counts, label, ask)
    without: list[str] = []
    for chosen in choices:
        sample = sample_label(graph, str(chosen.value), counts[str(chosen.value)])
        key = propose_key(graph, sample)
        if key is None:
            without.append(sample.name)
            continue
        if not without:
            return chosen, sample, key
        why = f"{chosen.why}; without a unique property: {', '.join(without)}"
        return Choice(chosen.value, why, sure=False), sample, key
    first = without[0]
    raise GraphError(
        found=f"no property of :{first} is there and different in every node",
        needed="a unique key: a prediction set belongs to one node",
        next_step=f"give the nodes one, or: ringfence init --label {_another(counts, first)}",
    )


def _rank_labels(
    graph: Graph, counts: dict[str, int], label: str | None, ask: Ask | None
) -> list[Choice]:
    """The labels to try, the likeliest first."""
    if label is not None:
        return [Choice(label, f"as asked for; {counts[label]} nodes")]
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
        answer = ask("Which label is to be predicted?", [column[2] for column in ranked], name)
        return [Choice(answer, "chosen by hand")]
    rest = [
        Choice(other, f"{n} nodes, the likeliest class: {property_}")
        for _, n, other, property_ in ranked[1:]
    ]
    return [Choice(name, why, sure), *rest]


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
        doubt = doubt_class(sample, wanted)
        if doubt is None:
            return Choice(wanted, "as asked for")
        return Choice(wanted, f"as asked for, but {doubt}", sure=False)
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
        names = [candidate.name for candidate in candidates]
        return Choice(ask("Which property is the class?", names, best.name), "chosen by hand")
    if not are_close(candidates):
        return Choice(best.name, best.why)
    second = candidates[1]
    why = f"{best.why}; {second.name} is close ({second.why})"
    return Choice(best.name, why, sure=False)


def _another(counts: dict[str, int], label: str) -> str:
    return shlex.quote(next((name for name in counts if name != label), label))
