"""Columns and relationships that give the class away; newcomers don't have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.connector.mapping import RelationMapping, TypedMapping
from ringfence.connector.neo4j.sample import LabelSample, SampledRelation, sample_label
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.checks.label import LabelInGraph
from ringfence.jobs.setup.finding import Finding
from ringfence.jobs.setup.proposal.context import find_presence_leak
from ringfence.jobs.setup.proposal.leaks import find_set_with_class, find_telling


def check_leaking_features(subject: LabelInGraph) -> Iterator[Finding]:
    """Numeric properties of the one-label form."""
    mapping = subject.mapping
    if mapping.features_are_list:
        return
    sample = sample_label(subject.graph, mapping.label, subject.view.count)
    classes = classes_of(sample, mapping.class_property)
    for name, leak in _leaks(sample, mapping.features, classes).items():
        yield Finding("error", f"{name} is {leak}", f'take "{name}" out of [graph] features')


def check_leaking_columns(
    settings: Settings, typed: TypedMapping, sample: LabelSample
) -> Iterator[Finding]:
    """Columns of the classified label; one that `[graph.columns]` names was chosen by a person."""
    classes = classes_of(sample, typed.class_property)
    named = settings.graph.columns.get(sample.name, {})
    for name, leak in _leaks(sample, typed.classified.column_names, classes).items():
        yield Finding(
            "warning" if name in named else "error",
            f"{sample.name}.{name}: {leak}",
            f'[graph.columns.{sample.name}]  {name} = "leave"   (or "use", if newcomers have it '
            "before their class is known)",
        )


def check_leaking_relations(typed: TypedMapping, sample: LabelSample) -> Iterator[Finding]:
    """Relationship types whose presence comes with the class, or all but names one."""
    classes = classes_of(sample, typed.class_property)
    for relation in typed.relations:
        for found in sample.relations:
            if relation.after_evaluation or not _is_same(typed, relation, found):
                continue
            if leak := find_presence_leak(found, classes):
                yield Finding(
                    "error",
                    f"{typed.describe(relation)} gives the class away: {leak}",
                    f"[[graph.relationships]] {relation.type}: after_evaluation = true, or take "
                    "the type out",
                )


def classes_of(sample: LabelSample, name: str) -> list[str | None]:
    """Return the classes of the sampled nodes."""
    found = sample.properties.get(name)
    if found is None:
        return [None] * sample.sampled
    return [None if value is None else str(value) for value in found.values]


def _leaks(sample: LabelSample, names: Sequence[str], classes: list[str | None]) -> dict[str, str]:
    values = {name: sample.properties[name].values for name in names if name in sample.properties}
    found = find_telling(values, classes)
    for name, column in values.items():
        if leak := find_set_with_class(column, classes):
            found[name] = leak
    return found


def _is_same(typed: TypedMapping, relation: RelationMapping, found: SampledRelation) -> bool:
    ends = (relation.source, relation.target)
    mine, other = ends if found.outgoing else ends[::-1]
    same_ends = mine == 0 and typed.nodes[other].label == found.label
    return same_ends and found.type == relation.type
