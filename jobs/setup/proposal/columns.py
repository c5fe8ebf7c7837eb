"""Which properties of a label are worth feeding to the network, each with its kind and reason."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.neo4j.sample import LabelSample, SampledProperty
from ringfence.jobs.setup.proposal.choice import LeftOut
from ringfence.jobs.setup.proposal.leaks import find_leaking_columns
from ringfence.models.encoders import infer_kind

CATEGORY_TYPES = {"STRING", "INTEGER", "BOOLEAN"}
MIN_SHARE_OF_TYPE = 0.95  # of the values that must be of one type


@dataclass(frozen=True, slots=True)
class ColumnProposal:
    """A property to feed: the kind that its values show, and why."""

    name: str
    kind: str
    why: str


def propose_columns(
    sample: LabelSample, taken: Mapping[str, str], classes: Sequence[str | None] = ()
) -> tuple[list[ColumnProposal], list[LeftOut]]:
    """Return the columns of a label and what is left out.

    `taken` has properties with another use (key, class, creation time) and its name; `classes` are
    those of the sampled nodes, of the classified label only.
    """
    used: list[ColumnProposal] = []
    left: list[LeftOut] = []
    for property_ in sample.properties.values():
        where = f"{sample.name}.{property_.name}"
        if property_.name in taken:
            continue
        proposal = infer_kind(property_.values)
        if not proposal.usable:
            left.append(LeftOut(where, f"{proposal.reason}{_use_anyway(sample.name, property_)}"))
        else:
            used.append(
                ColumnProposal(property_.name, proposal.kind, _reason(property_, proposal.reason))
            )
    if not classes:
        return used, left
    leaks = find_leaking_columns(usable_values(sample, taken), classes)
    left += [
        LeftOut(f"{sample.name}.{name}", f"CHECK: {why}{_use_leaking(sample.name, name)}")
        for name, why in leaks.items()
    ]
    return [column for column in used if column.name not in leaks], left


def usable_values(sample: LabelSample, taken: Container[str]) -> dict[str, list[Any]]:
    """Return the values of all properties that could be columns, by name."""
    return {
        name: property_.values
        for name, property_ in sample.properties.items()
        if name not in taken and infer_kind(property_.values).usable
    }


def _use_anyway(label: str, property_: SampledProperty) -> str:
    """What to type to use a property all the same; nothing where it has no value."""
    kind = kind_to_use(property_)
    if kind is None:
        return ""
    name = json.dumps(property_.name)
    return (
        f'; to use it: {name} in columns of {label}, and [graph.columns.{label}] {name} = "{kind}"'
    )


def kind_to_use(property_: SampledProperty) -> str | None:
    """Return a kind that takes whatever the values are; None where there is none."""
    if not property_.there or property_.type == "NULL":
        return None
    return "category" if property_.type in CATEGORY_TYPES else "text"


def _use_leaking(label: str, name: str) -> str:
    named = json.dumps(name)
    return (
        f"; if newcomers have it before their class is known: {named} in columns of {label}, and "
        f'[graph.columns.{label}] {named} = "use"'
    )


def _reason(property_: SampledProperty, reason: str) -> str:
    missing = "" if property_.share == 1 else f", missing in {1 - property_.share:.0%}"
    lists = f", {len(property_.sizes)} lengths" if len(property_.sizes) > 1 else ""
    return f"{reason}{lists}{missing}"


def vector_property(sample: LabelSample) -> SampledProperty | None:
    """Return a property that holds a list of numbers of one length in nearly all nodes."""
    vectors = [
        property_
        for property_ in sample.properties.values()
        if is_number_list(property_.type)
        and property_.share >= MIN_SHARE_OF_TYPE
        and len(property_.sizes) == 1
        and min(property_.sizes) > 0
    ]
    return max(vectors, key=lambda vector: (vector.share, vector.name)) if vectors else None


def is_number_list(type_: str) -> bool:
    """Whether Cypher's name of a type is that of a list of numbers.

    >>> is_number_list("LIST<FLOAT NOT NULL>"), is_number_list("LIST<STRING NOT NULL>")
    (True, False)
    """
    return type_.startswith(("LIST<FLOAT", "LIST<INTEGER", "VECTOR"))
