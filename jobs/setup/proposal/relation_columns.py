"""Which properties of relationships are worth feeding to the scorer: kinds, reasons and leaks.

Leaks are looked for as in columns of nodes, on relationships at nodes whose class is known: a value
that is there only where the class is, or that tells far more of it than others do, and half of it.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence

from ringfence.connector.neo4j.sample import RelationSample, SampledProperty
from ringfence.jobs.setup.proposal.choice import LeftOut
from ringfence.jobs.setup.proposal.columns import ColumnProposal, kind_to_use, values_to_judge
from ringfence.jobs.setup.proposal.leaks import (
    entropy_share,
    find_set_with_class,
    find_telling,
)
from ringfence.models.encoders import propose_kind

Triple = tuple[str, str, str]
MIN_ENTROPY_SHARE = 0.5  # one of a node's relationships seldom tells half of its class by itself


def propose_relation_columns(
    sample: RelationSample, triple: Triple, classified: str, taken: Mapping[str, str]
) -> tuple[list[ColumnProposal], list[LeftOut]]:
    """Return the columns of a relation, and every property that is left out with the reason.

    `triple` is its label, type and label; `taken` has properties with another use and its name.
    """
    used: list[ColumnProposal] = []
    left: list[LeftOut] = []
    leaks = find_relation_leaks(sample, triple, classified, taken)
    for name, property_ in sample.properties.items():
        where = f"{triple[1]}.{name}"
        if name in taken:
            left.append(LeftOut(where, f"the {taken[name]} of the relationships"))
            continue
        proposal = propose_kind(property_.values)
        reason = proposal.reason.replace("node", "relationship")
        if name in leaks:
            left.append(LeftOut(where, f"{leaks[name]}{_use_leaking(triple[1], name)}"))
        elif not proposal.usable:
            left.append(LeftOut(where, f"{reason}{_use_anyway(triple[1], property_)}"))
        else:
            missing = "" if property_.share == 1 else f", missing in {1 - property_.share:.0%}"
            used.append(ColumnProposal.of(name, proposal, f"{reason}{missing}"))
    return used, left


def _use_anyway(type_: str, property_: SampledProperty) -> str:
    kind = kind_to_use(property_)
    if kind is None:
        return ""
    name = json.dumps(property_.name)
    return f'; to use it: {{property = {name}, kind = "{kind}"}} in columns of {type_}'


def _use_leaking(type_: str, name: str) -> str:
    when = "if new nodes' relationships have it before the class is known"
    return f"; {when}: {json.dumps(name)} in columns of {type_}"


def leave_all_out(sample: RelationSample, type_: str, why: str) -> list[LeftOut]:
    """Return all properties of a type as left out, for one reason."""
    return [LeftOut(f"{type_}.{name}", why) for name in sample.properties]


def find_relation_leaks(
    sample: RelationSample,
    triple: Triple,
    classified: str,
    taken: Container[str],
) -> dict[str, str]:
    """Return the properties that give away the class of a node that they are at, and why.

    `init` and `doctor` ask this of all usable properties, chosen or not, but those that are `taken`
    for another use: what the one proposes the other does not warn of.
    """
    leaks: dict[str, str] = {}
    properties = {
        name: property_
        for name, property_ in sample.properties.items()
        if name not in taken and propose_kind(property_.values).usable
    }
    source, _, target = triple
    ends = ((source, sample.source_classes), (target, sample.target_classes))
    for classes in (classes for label, classes in ends if label == classified):
        leaks = _leaks(properties, classes) | leaks
    return leaks


def _leaks(
    properties: Mapping[str, SampledProperty], classes: Sequence[str | None]
) -> dict[str, str]:
    values = values_to_judge({name: property_.values for name, property_ in properties.items()})
    leaks = {
        name: f"CHECK: {why}"
        for name, why in find_telling(values, classes).items()
        if entropy_share(values[name], classes) >= MIN_ENTROPY_SHARE
    }
    for name, column in values.items():
        if leak := find_set_with_class(column, classes):
            leaks[name] = leak.replace("nodes", "relationships at nodes", 1)
    return leaks
