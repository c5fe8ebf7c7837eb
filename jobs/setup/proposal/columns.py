"""Which properties of a label are worth feeding to the network, each with its kind and reason."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ringfence.connector.neo4j.sample import LabelSample, SampledProperty
from ringfence.jobs.setup.proposal.choice import LeftOut
from ringfence.jobs.setup.proposal.leaks import find_leaking_columns
from ringfence.models.encoders import KindProposal, propose_kind, read_as
from ringfence.models.encoders.calendar import days_between, moments_of

CATEGORY_TYPES = {"STRING", "INTEGER", "BOOLEAN"}
DATED = ("date", "datetime")
MAX_NODES_OF_KEY_COLUMN = 64  # as many categories have a column of their own
MIN_SHARE_OF_TYPE = 0.95  # of the values that must be of one type


@dataclass(frozen=True, slots=True)
class ColumnProposal:
    """A property to feed: the kind that its values show, and why.

    options: of the encoder. named: the file has to name the kind, or it would be another one.
    """

    name: str
    kind: str
    why: str
    options: Mapping[str, bool | int | str] = field(default_factory=dict)
    named: bool = False

    @classmethod
    def of(cls, name: str, kind: KindProposal, why: str) -> ColumnProposal:
        """Return the column of a kind that was proposed."""
        return cls(name, kind.kind, why, kind.options, kind.named)


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
        proposal = propose_kind(property_.values)
        if not proposal.usable:
            left.append(LeftOut(where, f"{proposal.reason}{_use_anyway(sample.name, property_)}"))
        else:
            why = _reason(property_, proposal.reason)
            used.append(ColumnProposal.of(property_.name, proposal, why))
    used = propose_differences(used, sample, classes)
    if not classes:
        return used, left
    leaks = find_leaking_columns(usable_values(sample, taken), classes)
    left += [
        LeftOut(f"{sample.name}.{name}", f"CHECK: {why}{_use_leaking(sample.name, name)}")
        for name, why in leaks.items()
    ]
    return [column for column in used if column.name not in leaks], left


def propose_differences(
    columns: Sequence[ColumnProposal], sample: LabelSample, classes: Sequence[str | None]
) -> list[ColumnProposal]:
    """Return the columns; each date but the earliest is also read as days since that one.

    A difference that gives the class away is not proposed.
    """
    moments = {
        column.name: moments_of(sample.properties[column.name].values)[0]
        for column in columns
        if column.kind in DATED
    }
    medians = {name: float(np.median(days[days >= 0])) for name, days in moments.items()}
    if len(medians) < 2:
        return list(columns)
    base = min(medians, key=lambda name: (medians[name], name))
    since = {
        name: days_between(_pairs(sample, name, base)).tolist() for name in medians if name != base
    }
    others = {
        name: property_.values
        for name, property_ in sample.properties.items()
        if name in {column.name for column in columns}
    }
    judged = values_to_judge(others) | {
        f"{name} since {base}": [None if x != x else x for x in days]
        for name, days in since.items()
    }
    leaks = find_leaking_columns(judged, classes) if classes else {}
    return [
        replace(
            column,
            why=f"{column.why}; also as days since {base}",
            options={"since": base},
            named=True,
        )
        if column.name in since and f"{column.name} since {base}" not in leaks
        else column
        for column in columns
    ]


def _pairs(sample: LabelSample, name: str, base: str) -> list[tuple[Any, Any]]:
    values = (sample.properties[each].values for each in (name, base))
    return list(zip(*values, strict=True))


def usable_values(sample: LabelSample, taken: Container[str]) -> dict[str, list[Any]]:
    """Return the values of all properties that could be columns, by name."""
    return values_to_judge(
        {
            name: property_.values
            for name, property_ in sample.properties.items()
            if name not in taken
        }
    )


def values_to_judge(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the columns that are worth using, with their values as their kinds read them."""
    kinds = {name: propose_kind(values) for name, values in columns.items()}
    return {
        name: list(read_as(kinds[name], values))
        for name, values in columns.items()
        if kinds[name].usable
    }


def propose_key_column(sample: LabelSample, key: str) -> list[ColumnProposal]:
    """Return the key as the only column of a label: a category, where it has few nodes.

    >>> from ringfence.connector.neo4j.sample import SampledProperty
    >>> names = {"name": SampledProperty("name", ["sea", "air"])}
    >>> propose_key_column(LabelSample("Way", 2, names, (), frozenset()), "name")[0].kind
    'category'
    """
    if sample.count > MAX_NODES_OF_KEY_COLUMN:
        return []
    why = f"the key, which tells the {sample.count} nodes apart: the label has no other property"
    return [ColumnProposal(key, "category", why, {"least": 1}, named=True)]


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
