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
        (one for one in sample.properties.values() if _may_be_key(one)),
        key=lambda one: (one.name not in sample.unique, not _says_key(one.name), one.name),
    )
    for one in plausible[:MAX_KEY_TRIES]:
        if one.name in sample.unique:
            return Choice(one.name, "has a unique constraint")
        exact = count_distinct(graph, sample.name, one.name, sample.count)
        if exact is None:
            return Choice(one.name, f"unique in {one.sampled} sampled nodes", sure=False)
        if exact == (sample.count, sample.count):
            return Choice(one.name, f"unique in all {sample.count} nodes")
    return None


def _may_be_key(one: SampledProperty) -> bool:
    distinct = len({repr(value) for value in one.values})
    return one.type in KEY_TYPES and len(one.types) == 1 and distinct == one.sampled == one.there


def _says_key(name: str) -> bool:
    lowered = name.lower()
    return lowered in {"id", "key", "uid", "uuid", "code"} or lowered.endswith(("id", "_key"))
