"""Whether the relationship types that carry messages are there, with their times."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.jobs.setup.checks.label import LabelInGraph
from ringfence.jobs.setup.finding import Finding


def check_relationships(subject: LabelInGraph) -> Iterator[Finding]:
    """Every configured type connects nodes of the label and has its creation time."""
    kinds = {kind.name: kind for kind in subject.view.relationships}
    there = ", ".join(kinds) or "none"
    if not subject.mapping.relationships:
        yield Finding(
            "warning",
            "no relationship type is configured: the network sees no edges",
            f"add [[graph.relationships]]; there are: {there}",
        )
    for wanted in subject.mapping.relationships:
        kind = kinds.get(wanted.type)
        if kind is None:
            yield Finding(
                "warning",
                f"no {wanted.type} relationship connects :{subject.view.name} nodes",
                f"correct [[graph.relationships]] type; there are: {there}",
            )
            continue
        on_every = [prop.name for prop in kind.properties if prop.share == 1]
        if wanted.created_at and wanted.created_at not in on_every:
            yield Finding(
                "warning",
                f"not every {wanted.type} has {wanted.created_at}",
                'those without are seen only when the whole graph is read; created_at = "" reads '
                "relationships with their nodes",
            )
        else:
            yield Finding("ok", f"{kind.count} {wanted.type} relationships")
