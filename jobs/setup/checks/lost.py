"""How many nodes would fall out: without a key or a time, or with features of another length."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.neo4j.sample import LabelSample, sample_label
from ringfence.jobs.setup.checks.label import LabelInGraph
from ringfence.jobs.setup.finding import Finding
from ringfence.jobs.setup.proposal.columns import is_number_list

MAX_LOST_SHARE = 0.05  # of the nodes; more than these few per cent is an error


def check_lost_nodes(subject: LabelInGraph) -> Iterator[Finding]:
    """Every node of the one-label form needs key, time and features of one length."""
    mapping = subject.mapping
    sample = sample_label(subject.graph, mapping.classified.label, subject.view.count)
    for name in mapping.classified.column_names:
        property_ = sample.properties.get(name)
        if mapping.features_are_list and property_ is not None and is_number_list(property_.type):
            length, most = property_.sizes.most_common(1)[0] if property_.sizes else (0, 0)
            lost = 1 - most / max(sum(property_.sizes.values()), 1)
            if lost:
                yield Finding(
                    "error" if lost > MAX_LOST_SHARE else "warning",
                    f"{name} has lists of {len(property_.sizes)} lengths; the nodes whose list has "
                    f"not {length} numbers ({lost:.0%}) fall out",
                    "lists of varying length are a column, not a vector: ringfence init --force "
                    "writes [[graph.nodes]]",
                )
        yield from lost_without(sample, name, "features")
    yield from lost_without(sample, mapping.classified.key, "key")
    if mapping.classified.created_at:
        yield from lost_without(sample, mapping.classified.created_at, "created_at")


def lost_without(sample: LabelSample, name: str, setting: str) -> Iterator[Finding]:
    """Yield an error where more than a few per cent of the nodes lack a property they need."""
    property_ = sample.properties.get(name)
    lost = 1 - (property_.share if property_ else 0.0)
    if property_ is not None and lost > MAX_LOST_SHARE:
        yield Finding(
            "error",
            f"{lost:.0%} of the :{sample.name} nodes have no {name} and fall out",
            f"give them one, or choose another {setting}: ringfence init --force shows candidates",
        )
