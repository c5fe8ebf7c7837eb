"""Which properties of a label are worth feeding to the network, each with its kind and reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ringfence.connector.neo4j.sample import LabelSample, SampledProperty
from ringfence.jobs.setup.proposal.choice import LeftOut
from ringfence.jobs.setup.proposal.leaks import find_set_with_class, find_telling
from ringfence.models.encoders import infer_kind

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
    for one in sample.properties.values():
        where = f"{sample.name}.{one.name}"
        if one.name in taken:
            continue
        proposal = infer_kind(one.values)
        leak = find_set_with_class(one.values, classes) if classes else None
        if leak:
            left.append(LeftOut(where, leak))
        elif not proposal.usable:
            left.append(LeftOut(where, proposal.reason))
        else:
            used.append(ColumnProposal(one.name, proposal.kind, _reason(one, proposal.reason)))
    if not classes:
        return used, left
    values = {column.name: sample.properties[column.name].values for column in used}
    telling = find_telling(values, classes)
    left += [LeftOut(f"{sample.name}.{name}", f"CHECK: {why}") for name, why in telling.items()]
    return [column for column in used if column.name not in telling], left


def _reason(one: SampledProperty, reason: str) -> str:
    missing = "" if one.share == 1 else f", missing in {1 - one.share:.0%}"
    lists = f", {len(one.sizes)} lengths" if len(one.sizes) > 1 else ""
    return f"{reason}{lists}{missing}"


def vector_property(sample: LabelSample) -> SampledProperty | None:
    """Return a property that holds a list of numbers of one length in nearly all nodes."""
    vectors = [
        one
        for one in sample.properties.values()
        if is_number_list(one.type)
        and one.share >= MIN_SHARE_OF_TYPE
        and len(one.sizes) == 1
        and min(one.sizes) > 0
    ]
    return max(vectors, key=lambda one: (one.share, one.name)) if vectors else None


def is_number_list(type_: str) -> bool:
    """Whether Cypher's name of a type is that of a list of numbers.

    >>> is_number_list("LIST<FLOAT NOT NULL>"), is_number_list("LIST<STRING NOT NULL>")
    (True, False)
    """
    return type_.startswith(("LIST<FLOAT", "LIST<INTEGER", "VECTOR"))
