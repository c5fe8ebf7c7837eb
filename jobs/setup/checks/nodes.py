"""Whether the nodes have their key, features, classes and times as `[graph]` says."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.neo4j.read.watermark import check_time_types
from ringfence.jobs.setup.checks.classes import check_known_classes
from ringfence.jobs.setup.checks.label import LabelInGraph
from ringfence.jobs.setup.finding import Finding, attempt


def check_key(subject: LabelInGraph) -> Iterator[Finding]:
    """The key is there, unique, and guarded by a constraint."""
    name = subject.mapping.classified.key
    key = subject.find_property(name)
    if key is None:
        yield subject.missing_property("key", name)
        return
    if key.distinct < round(key.share * key.sampled):
        yield Finding(
            "error",
            f"the key {name} is not unique ({key.distinct} values in {key.sampled} nodes)",
            "choose another [graph] key, or merge the nodes",
        )
    elif not key.unique:
        yield Finding(
            "warning",
            f"the key {name} has no unique constraint",
            "ringfence migrate creates it ([graph] manage_indexes = true)",
        )
    else:
        yield Finding("ok", f"the key {name} is unique")
    if key.share < 1:
        lacking = f"{1 - key.share:.0%} of the nodes have no {name}"
        yield Finding("warning", lacking, "they go to quarantine")


def check_features(subject: LabelInGraph) -> Iterator[Finding]:
    """Every feature is there and is a number, or a list of numbers."""
    as_list = subject.mapping.features_are_list
    for name in subject.mapping.classified.column_names:
        feature = subject.find_property(name)
        if feature is None:
            yield subject.missing_property("features", name)
        elif not (feature.is_number_list if as_list else feature.is_number):
            needed = "a list of numbers" if as_list else "a number"
            yield Finding("error", f"{name} is {feature.type}", f"[graph] features needs {needed}")
        elif feature.share < 1:
            lacking = f"{1 - feature.share:.0%} of the nodes have no {name}"
            yield Finding("warning", lacking, "they go to quarantine until they have it")
        else:
            yield Finding("ok", f"features: {name} ({feature.type})")


def check_classes(subject: LabelInGraph) -> Iterator[Finding]:
    """Classes are known, and enough of them for calibration."""
    yield from check_known_classes(subject.graph, subject.settings)


def check_times(subject: LabelInGraph) -> Iterator[Finding]:
    """Creation times are there and of the configured type."""
    mapping = subject.mapping
    name = str(mapping.classified.created_at)
    created = subject.find_property(name)
    if created is None:
        yield subject.missing_property("created_at", name)
        return
    yield attempt(
        f"every {name} has the type that [graph] time_kind says",
        lambda: check_time_types(subject.graph, mapping),
    )
    if created.share < 1:
        lacking = f"{1 - created.share:.0%} of the nodes have no {name}"
        yield Finding("warning", lacking, "they go to quarantine until they have it")
