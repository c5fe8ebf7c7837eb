"""`ringfence init`: inspect the live graph, propose a filled-in configuration, give reasons."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.embedded import Progress
from ringfence.connector.neo4j.inspect import LabelView, Property, count_labels, inspect_label
from ringfence.connector.neo4j.times import VALUE_TYPE
from ringfence.jobs.config.load import load_values
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.workspace import open_graph

LABELS_INSPECTED = 5
LABELS_NAMED = 10
MAX_CLASSES = 50


@dataclass(frozen=True, slots=True)
class Choice:
    """A proposed value and the reason for it; `sure` is False where a person must check it."""

    value: object
    why: str
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Proposal:
    """Everything that `[graph]` needs, each with its reason."""

    label: Choice
    key: Choice
    features: Choice
    class_property: Choice
    created_at: Choice
    time_kind: Choice
    relationships: tuple[tuple[str, str | None, str], ...]

    @property
    def open_points(self) -> list[str]:
        """Settings that could not be found out."""
        names = ("key", "features", "class_property", "created_at")
        return [name for name in names if not getattr(self, name).sure]


def run_init(
    output: Path,
    uri: str,
    user: str,
    label: str | None,
    project: str,
    *,
    force: bool,
    download: Callable[[Progress], None] | None = None,
) -> Proposal:
    """Inspect the graph behind `uri` and write the proposal to `output`."""
    if output.exists() and not force:
        raise ConfigError(
            found=f"{output} exists",
            needed="the name of a new file, or --force to replace the old one",
            next_step=f"ringfence init --uri {shlex.quote(uri)} --output other.toml",
        )
    with open_graph(_server_settings(uri, user, output), download) as graph:
        proposal = propose(graph, label)
    output.write_text(as_toml(proposal, project, uri, user), encoding="utf-8")
    return proposal


def _server_settings(uri: str, user: str, output: Path) -> Settings:
    """Return settings that say no more than where the server is."""
    values = {"neo4j": {"uri": uri, "user": user}}
    graph = {"label": "-", "key": "-", "features": "-", "class_property": "-"}
    return load_values({**values, "graph": graph}, output, os.environ)


def propose(graph: Graph, label: str | None = None) -> Proposal:
    """Propose settings for `label`, or for the label with the most settings found."""
    counts = {name: count for name, count in count_labels(graph).items() if count}
    if not counts:
        raise GraphError(
            found="the graph is empty",
            needed="a graph with nodes",
            next_step="ringfence demo   (shows everything on a sample graph), or load your own",
        )
    if label is not None and label not in counts:
        raise GraphError(
            found=f"the graph has no :{label} nodes",
            needed="a label with nodes: " + ", ".join(list(counts)[:LABELS_NAMED]),
            next_step=f"ringfence init --label {shlex.quote(next(iter(counts)))}",
        )
    views = [
        inspect_label(graph, name)
        for name in ([label] if label else list(counts)[:LABELS_INSPECTED])
    ]
    view = max(views, key=_plausibility)
    others = [name for name in counts if name != view.name][:LABELS_INSPECTED]
    why = f"{view.count} nodes" + (f"; also there: {', '.join(others)}" if others else "")
    created = _created(view.properties)
    class_ = _class(view.properties)
    key = _key(view.properties)
    taken = {choice.value for choice in (created, class_, key)}
    return Proposal(
        label=Choice(view.name, why),
        key=key,
        features=_features(view.properties, taken),
        class_property=class_,
        created_at=created,
        time_kind=_time_kind(view.properties, created),
        relationships=tuple(
            (kind.name, _relationship_time(kind.properties), f"{kind.count} relationships")
            for kind in view.relationships
        ),
    )


def _plausibility(view: LabelView) -> tuple[int, int]:
    """How plausible it is that a label is to be predicted: settings found, then nodes."""
    found = sum(choose(view.properties).sure for choose in (_key, _class, _created))
    return found + _features(view.properties, set()).sure, view.count


def _key(properties: tuple[Property, ...]) -> Choice:
    plausible = [
        prop
        for prop in properties
        if prop.type in {"STRING", "INTEGER"} and prop.distinct == prop.sampled and prop.share == 1
    ]
    if not plausible:
        why = "no property is unique in every node; a unique key is needed"
        return Choice("id", why, sure=False)
    best = min(plausible, key=lambda prop: (not prop.unique, "id" not in prop.name.lower()))
    reason = "has a unique constraint" if best.unique else f"unique in {best.sampled} nodes"
    return Choice(best.name, reason)


def _features(properties: tuple[Property, ...], taken: set[object]) -> Choice:
    free = [prop for prop in properties if prop.name not in taken]
    lists = [prop for prop in free if prop.is_number_list]
    if lists:
        best = max(lists, key=lambda prop: prop.share)
        return Choice(best.name, f"a list of numbers in {best.share:.0%} of the nodes")
    names = [prop.name for prop in free if prop.is_number and prop.share > 0.5]
    if names:
        return Choice(names, f"{len(names)} numeric properties; take out what isn't a feature")
    return Choice([], "no list of numbers and no numeric property", sure=False)


def _class(properties: tuple[Property, ...]) -> Choice:
    plausible = [
        prop
        for prop in properties
        if prop.type in {"STRING", "INTEGER", "BOOLEAN"}
        and 2 <= prop.distinct <= MAX_CLASSES
        and prop.distinct < prop.sampled / 4
    ]
    if not plausible:
        return Choice("class", "no property has a few repeated values", sure=False)
    best = min(plausible, key=lambda prop: (prop.share == 1, prop.type != "STRING"))
    return Choice(best.name, f"{best.distinct} values, known for {best.share:.0%} of the nodes")


def _created(properties: tuple[Property, ...]) -> Choice:
    times = [prop for prop in properties if prop.is_time]
    times += [prop for prop in properties if prop.type == "INTEGER" and _says_created(prop)]
    if not times:
        why = "no property holds a time; a creation time is needed"
        return Choice("created_at", why, sure=False)
    best = min(times, key=lambda prop: (not _says_created(prop), -prop.share))
    return Choice(best.name, f"{best.type} in {best.share:.0%} of the nodes")


def _says_created(prop: Property) -> bool:
    return "creat" in prop.name.lower()


def _time_kind(properties: tuple[Property, ...], created: Choice) -> Choice:
    type_ = next((prop.type for prop in properties if prop.name == created.value), "ZONED DATETIME")
    kind = next((kind for kind, name in VALUE_TYPE.items() if name == type_), "zoned")
    return Choice(kind, f"{created.value} is a {type_}")


def _relationship_time(properties: tuple[Property, ...]) -> str | None:
    created = _created(properties)
    return str(created.value) if created.sure else None


def as_toml(proposal: Proposal, project: str, uri: str, user: str) -> str:
    """Return the proposal as the text of a `ringfence.toml`, reasons as comments."""
    lines = [
        "# Written by `ringfence init`; every setting: docs/configuration.md",
        "# Secrets stay out of this file: RINGFENCE_NEO4J_PASSWORD, RINGFENCE_AUDIT_PASSWORD.",
        f"project = {_toml(project)}",
        "",
        "[neo4j]",
        f"uri = {_toml(uri)}",
        f"user = {_toml(user)}",
        "",
        "[audit]",
        'url = "sqlite:///.ringfence/audit.db"',
        "",
        "[graph]",
    ]
    for name in ("label", "key", "features", "class_property", "created_at", "time_kind"):
        choice: Choice = getattr(proposal, name)
        mark = "" if choice.sure else "CHECK THIS: "
        lines.append(f"{name} = {_toml(choice.value)}  # {mark}{_comment(choice.why)}")
    for type_, created, why in proposal.relationships:
        lines += ["", f"[[graph.relationships]]  # {_comment(why)}", f"type = {_toml(type_)}"]
        lines += ["undirected = true"]
        lines += [f"created_at = {_toml(created or '')}"]
    lines += ["", "[conformal]", "alpha = 0.1", 'rule = "NodeEx"', ""]
    return "\n".join(lines)


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
