"""Which property is a label's key: one that is there in every node, and unique."""

from __future__ import annotations

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.sample import LabelSample, SampledProperty, count_distinct
from ringfence.jobs.setup.proposal.choice import Choice

KEY_TYPES = {"STRING", "INTEGER"}
MAX_KEY_TRIES = 5  # properties whose values are all compared


def propose_key(graph: Graph, sample: LabelSample) -> Choice | None:
    """Return the likeliest key; None where no property is unique in every node."""
    plausible = sorted(
        (property_ for property_ in sample.properties.values() if _may_be_key(property_)),
        key=lambda candidate: (
            candidate.name not in sample.unique,
            not _says_key(candidate.name),
            candidate.name,
        ),
    )
    for candidate in plausible[:MAX_KEY_TRIES]:
        if candidate.name in sample.unique:
            return Choice(candidate.name, "has a unique constraint")
        exact = count_distinct(graph, sample.name, candidate.name, sample.count)
        if exact is None:
            return Choice(
                candidate.name, f"unique in {candidate.sampled} sampled nodes", sure=False
            )
        if exact == (sample.count, sample.count):
            return Choice(candidate.name, f"unique in all {sample.count} nodes")
    return None


def _may_be_key(property_: SampledProperty) -> bool:
    distinct = len({repr(value) for value in property_.values})
    return (
        property_.type in KEY_TYPES
        and len(property_.types) == 1
        and distinct == property_.sampled == property_.there
    )


def _says_key(name: str) -> bool:
    lowered = name.lower()
    return lowered in {"id", "key", "uid", "uuid", "code"} or lowered.endswith(("id", "_key"))
