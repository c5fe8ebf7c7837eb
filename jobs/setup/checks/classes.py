"""Whether the known classes are enough to learn from and to calibrate with."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.neo4j.classes import count_classes
from ringfence.connector.neo4j.driver import Graph
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.setup.finding import Finding
from ringfence.models.guarantee.law import smallest_n

MANY_CLASSES = 50
FEW_NODES = 10
CLASSES_NAMED = 5


def check_known_classes(graph: Graph, settings: Settings) -> Iterator[Finding]:
    """At least two classes are known, and enough nodes of them for calibration."""
    mapping = settings.mapping()
    name = mapping.class_property
    counts = count_classes(graph, mapping)
    known = sum(counts.values())
    if len(counts) < 2:
        only = f"only {next(iter(counts))!r} in {name}" if counts else f"nothing in {name}"
        yield Finding(
            "error",
            f"{known} :{mapping.classified.label} nodes have a known class: {only}",
            "correct [graph] class_property, or label some nodes; ringfence init ranks candidates",
        )
        return
    yield Finding("ok", f"{known} nodes have a known class ({len(counts)} classes)")
    yield from _check_few(counts)
    yield from _check_calibration(known, settings)


def _check_few(counts: dict[str, int]) -> Iterator[Finding]:
    few = [f"{class_!r} ({count})" for class_, count in counts.items() if count < FEW_NODES]
    if few:
        named = ", ".join(few[:CLASSES_NAMED]) + (" …" if len(few) > CLASSES_NAMED else "")
        yield Finding(
            "warning",
            f"{len(few)} of {len(counts)} classes have fewer than {FEW_NODES} nodes: {named}",
            "their sets can't be narrow; merge rare classes in the graph, or label more nodes",
        )
    if len(counts) > MANY_CLASSES:
        yield Finding(
            "warning",
            f"{len(counts)} classes; sets of so many classes are rarely read",
            "is [graph] class_property a class, or an identifier? ringfence init ranks candidates",
        )


def _check_calibration(known: int, settings: Settings) -> Iterator[Finding]:
    alpha = min(settings.conformal.alphas)
    needed = smallest_n(alpha)
    calibration = round(known * (1 - settings.model.holdout) * settings.model.calibration)
    if calibration < needed:
        yield Finding(
            "warning",
            f"about {calibration} calibration nodes; {needed} are needed for "
            f"{1 - alpha:.0%}: every set would be full",
            "label more nodes, raise [model] calibration, or raise [conformal] alpha",
        )
