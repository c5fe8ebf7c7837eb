"""`ringfence doctor`: the configuration against the live graph and both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ringfence.connector.changes import feature_width
from ringfence.connector.embedded import Progress
from ringfence.connector.errors import ModelError, RingfenceError
from ringfence.connector.graph import Graph
from ringfence.connector.inspect import LabelView, Property, labels, look
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.migrate_graph import require_graph
from ringfence.connector.migrate_sql import require_sql
from ringfence.connector.models import newest_manifest
from ringfence.connector.store import Store
from ringfence.connector.watermark import check_time_types, count_relationships
from ringfence.jobs import memory
from ringfence.jobs.audit_store import open_audit
from ringfence.jobs.config import load
from ringfence.jobs.looking import Look
from ringfence.jobs.schedule.planning import switched_on, triggers
from ringfence.jobs.settings import Settings
from ringfence.jobs.workspace import open_graph
from ringfence.models.guarantee import smallest_n


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `fix` says what to do where it isn't ok."""

    level: Literal["ok", "warning", "error"]
    text: str
    fix: str = ""


def run_doctor(
    config: Path | None, download: Callable[[Progress], None] | None = None
) -> list[Finding]:
    """Return every finding, also where some part can't be reached at all."""
    try:
        settings = load(config)
    except RingfenceError as error:
        return [_error(error)]
    found = [Finding("ok", "the configuration can be read"), _schedule(settings)]
    with ExitStack() as stack:
        try:
            graph = stack.enter_context(open_graph(settings, download))
        except RingfenceError as error:
            found.append(_error(error))
        else:
            found.append(Finding("ok", f"Neo4j answers at {graph.uri}"))
            found += _graph(graph, settings)
        try:
            store = stack.enter_context(open_audit(settings))
            found += _store(store, settings)
        except RingfenceError as error:
            found.append(_error(error))
    return found


def _error(error: RingfenceError) -> Finding:
    return Finding("error", error.found, error.next_step or error.needed)


def _attempt(what: str, check: Callable[[], object]) -> Finding:
    try:
        check()
    except RingfenceError as error:
        return _error(error)
    return Finding("ok", what)


def _schedule(settings: Settings) -> Finding:
    on = [f"{job} {time!r}" for job, time in switched_on(settings).items()]
    if not on:
        return Finding("ok", "nothing is scheduled")
    return _attempt(f"the schedule can be kept: {', '.join(on)}", lambda: triggers(settings))


def _graph(graph: Graph, settings: Settings) -> Iterator[Finding]:
    mapping = settings.mapping()
    yield _attempt("the graph has ringfence's constraints", lambda: require_graph(graph))
    counts = labels(graph)
    if not counts.get(mapping.label):
        there = ", ".join(f"{name} ({n})" for name, n in list(counts.items())[:10]) or "none"
        yield Finding(
            "error",
            f"the graph has no :{mapping.label} nodes; labels there are: {there}",
            "correct [graph] label, or: ringfence init",
        )
        return
    view = look(graph, mapping.label)
    yield Finding("ok", f"{view.count} :{mapping.label} nodes")
    yield from _key(view, mapping)
    yield from _features(view, mapping)
    yield from _classes(graph, view, settings)
    yield from _times(graph, view, mapping)
    yield from _relationships(view, mapping)
    yield from _memory(graph, view, settings)


def _property(view: LabelView, name: str) -> Property | None:
    return next((one for one in view.properties if one.name == name), None)


def _missing(view: LabelView, setting: str, name: str) -> Finding:
    there = ", ".join(one.name for one in view.properties)
    return Finding(
        "error",
        f"no :{view.name} node has the property {name}; there are: {there}",
        f"correct [graph] {setting}",
    )


def _key(view: LabelView, mapping: GraphMapping) -> Iterator[Finding]:
    key = _property(view, mapping.key)
    if key is None:
        yield _missing(view, "key", mapping.key)
    elif key.distinct < round(key.share * key.sampled):
        yield Finding(
            "error",
            f"the key {key.name} is not unique ({key.distinct} values in {key.sampled} nodes)",
            "choose another [graph] key, or merge the nodes",
        )
    elif not key.unique:
        yield Finding(
            "warning",
            f"the key {key.name} has no unique constraint",
            "ringfence migrate creates it ([graph] manage_indexes = true)",
        )
    else:
        yield Finding("ok", f"the key {key.name} is unique")
    if key is not None and key.share < 1:
        yield Finding(
            "warning",
            f"{1 - key.share:.0%} of the nodes have no {key.name}",
            "they go to quarantine",
        )


def _features(view: LabelView, mapping: GraphMapping) -> Iterator[Finding]:
    for name in mapping.features:
        one = _property(view, name)
        fits = one and (one.is_number_list if mapping.features_are_list else one.is_number)
        if one is None:
            yield _missing(view, "features", name)
        elif not fits:
            needed = "a list of numbers" if mapping.features_are_list else "a number"
            yield Finding("error", f"{name} is {one.type}", f"[graph] features needs {needed}")
        elif one.share < 1:
            lacking = f"{1 - one.share:.0%} of the nodes have no {name}"
            yield Finding("warning", lacking, "they go to quarantine until they have it")
        else:
            yield Finding("ok", f"features: {name} ({one.type})")


def _classes(graph: Graph, view: LabelView, settings: Settings) -> Iterator[Finding]:
    name = settings.graph.class_property
    one = _property(view, name)
    if one is None:
        yield Finding(
            "error",
            f"no :{view.name} node has a known class ({name})",
            "correct [graph] class_property, or label some nodes",
        )
        return
    known = round(one.share * view.count)
    yield Finding("ok", f"about {known} nodes have a known class ({one.distinct} classes)")
    needed = smallest_n(settings.conformal.alpha)
    calibration = round(known * settings.model.calibration)
    if calibration < needed:
        yield Finding(
            "warning",
            f"about {calibration} calibration nodes; {needed} are needed for "
            f"{1 - settings.conformal.alpha:.0%}: every set would be full",
            "label more nodes, raise [model] calibration, or raise [conformal] alpha",
        )


def _times(graph: Graph, view: LabelView, mapping: GraphMapping) -> Iterator[Finding]:
    one = _property(view, mapping.created_at)
    if one is None:
        yield _missing(view, "created_at", mapping.created_at)
        return
    yield _attempt(
        f"every {mapping.created_at} has the type that [graph] time_kind says",
        lambda: check_time_types(graph, mapping),
    )
    if one.share < 1:
        text = f"{1 - one.share:.0%} of the nodes have no {one.name}"
        yield Finding("warning", text, "they go to quarantine until they have it")


def _relationships(view: LabelView, mapping: GraphMapping) -> Iterator[Finding]:
    there = {kind.name: kind for kind in view.relationships}
    if not mapping.relationships:
        yield Finding(
            "warning", "no relationship type is configured: the network sees no edges",
            "add [[graph.relationships]]; there are: " + (", ".join(there) or "none"),
        )  # fmt: skip
    for wanted in mapping.relationships:
        kind = there.get(wanted.type)
        if kind is None:
            yield Finding(
                "warning", f"no {wanted.type} relationship connects :{view.name} nodes",
                "correct [[graph.relationships]] type; there are: " + (", ".join(there) or "none"),
            )  # fmt: skip
            continue
        names = [one.name for one in kind.properties if one.share == 1]
        if wanted.created_at and wanted.created_at not in names:
            yield Finding(
                "warning", f"not every {wanted.type} has {wanted.created_at}",
                'those without are seen only when the whole graph is read; created_at = "" reads '
                "relationships with their nodes",
            )  # fmt: skip
        else:
            yield Finding("ok", f"{kind.count} {wanted.type} relationships")


def _memory(graph: Graph, view: LabelView, settings: Settings) -> Iterator[Finding]:
    """Predict what the graph needs from its counts."""
    mapping = settings.mapping()
    try:
        width = feature_width(graph, mapping)
    except RingfenceError:
        return  # said already
    classes = _property(view, mapping.class_property)
    need = memory.predict(
        view.count,
        count_relationships(graph, mapping),
        width,
        settings.model.hidden,
        classes.distinct if classes else 2,
        classes.share if classes else 0.0,
    )
    text = (
        f"scoring needs about {memory.words(need.score)} of memory, training "
        f"{memory.words(need.train)}; mirror and tables {memory.words(need.disk)} of disk"
    )
    free = memory.available()
    if max(need.score, need.train) > free:
        yield Finding(
            "warning",
            f"{text}; {memory.words(free)} of memory are free",
            "use a machine with more memory, a smaller [model] hidden, or fewer labelled nodes",
        )
    else:
        yield Finding("ok", text)


def _store(store: Store, settings: Settings) -> Iterator[Finding]:
    migrated = _attempt(
        f"the audit store works ({store.engine.dialect.name})",
        lambda: require_sql(store),
    )
    yield migrated
    if migrated.level == "error":
        return
    try:
        newest_manifest(store, settings.project)
    except ModelError as error:
        yield Finding("warning", error.found, error.next_step)
    else:
        yield Finding("ok", "a model is trained")
    for row in Look(store, settings.project).quarantine():
        text = f"{row['nodes']} nodes are in quarantine: {row['reason']}"
        yield Finding("warning", text, "mend them; every run looks at them again")
