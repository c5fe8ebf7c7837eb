"""`ringfence init`: look at the live graph, propose a filled-in configuration, say why."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ringfence.connector.embedded import Progress
from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.graph import Graph
from ringfence.connector.inspect import LabelView, Property, labels, look
from ringfence.connector.times import VALUE_TYPE
from ringfence.jobs.config import load_values
from ringfence.jobs.settings import Settings
from ringfence.jobs.workspace import open_graph


@dataclass(frozen=True, slots=True)
class Choice:
    """A proposed value and the reason for it; `sure` is False where a person must look."""

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
    """Look at the graph behind `uri` and write the proposal to `output`."""
    if output.exists() and not force:
        raise ConfigError(
            found=f"{output} exists",
            needed="a name for a new file",
            next_step=f"ringfence init --output other.toml, or --force to replace {output}",
        )
    with open_graph(_bare(uri, user, output), download) as graph:
        proposal = propose(graph, label)
    output.write_text(as_toml(proposal, project, uri, user), encoding="utf-8")
    return proposal


def _bare(uri: str, user: str, output: Path) -> Settings:
    """Settings that say no more than where the server is."""
    values = {"neo4j": {"uri": uri, "user": user}}
    graph = {"label": "-", "key": "-", "features": "-", "class_property": "-"}
    return load_values({**values, "graph": graph}, output, os.environ)


def propose(graph: Graph, label: str | None = None) -> Proposal:
    """Look at `label`, or at the label that looks most like something to predict."""
    counts = {name: count for name, count in labels(graph).items() if count}
    if not counts:
        raise GraphError(
            found="the graph is empty",
            needed="nodes to look at",
            next_step="ringfence sample   (loads a sample graph), or load your own",
        )
    if label is not None and label not in counts:
        raise GraphError(
            found=f"the graph has no :{label} nodes",
            needed="one of " + ", ".join(list(counts)[:10]),
            next_step=f"ringfence init --label {next(iter(counts))}",
        )
    views = [look(graph, name) for name in ([label] if label else list(counts)[:5])]
    view = max(views, key=_promise)
    others = [name for name in counts if name != view.name][:5]
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


def _promise(view: LabelView) -> tuple[int, int]:
    """How much a label looks like something to predict: settings found, then nodes."""
    found = (_key, _class, _created)
    clear = sum(choose(view.properties).sure for choose in found)
    return clear + _features(view.properties, set()).sure, view.count


def _key(properties: tuple[Property, ...]) -> Choice:
    plausible = [
        one
        for one in properties
        if one.type in {"STRING", "INTEGER"} and one.distinct == one.sampled and one.share == 1
    ]
    for one in sorted(plausible, key=lambda one: (not one.unique, "id" not in one.name.lower())):
        reason = "has a unique constraint" if one.unique else f"unique in {one.sampled} nodes"
        return Choice(one.name, reason)
    return Choice("id", "no property is unique in every node; a unique key is needed", sure=False)


def _features(properties: tuple[Property, ...], taken: set[object]) -> Choice:
    lists = [one for one in properties if one.is_number_list and one.name not in taken]
    if lists:
        best = max(lists, key=lambda one: one.share)
        return Choice(best.name, f"a list of numbers in {best.share:.0%} of the nodes")
    numbers = [one for one in properties if one.is_number and one.name not in taken]
    numbers = [one for one in numbers if one.share > 0.5]
    if numbers:
        names = [one.name for one in numbers]
        return Choice(names, f"{len(names)} numeric properties; take out what isn't a feature")
    return Choice([], "no list of numbers and no numeric property", sure=False)


def _class(properties: tuple[Property, ...]) -> Choice:
    plausible = [
        one
        for one in properties
        if one.type in {"STRING", "INTEGER", "BOOLEAN"}
        and 2 <= one.distinct <= 50
        and one.distinct < one.sampled / 4
    ]
    for one in sorted(plausible, key=lambda one: (one.share == 1, one.type != "STRING")):
        return Choice(one.name, f"{one.distinct} values, known for {one.share:.0%} of the nodes")
    return Choice("class", "no property has a few repeated values", sure=False)


def _created(properties: tuple[Property, ...]) -> Choice:
    times = [one for one in properties if one.is_time]
    times += [one for one in properties if one.type == "INTEGER" and "creat" in one.name.lower()]
    for one in sorted(times, key=lambda one: ("creat" not in one.name.lower(), -one.share)):
        return Choice(one.name, f"{one.type} in {one.share:.0%} of the nodes")
    return Choice("created_at", "no property holds a time; a creation time is needed", sure=False)


def _time_kind(properties: tuple[Property, ...], created: Choice) -> Choice:
    type_ = next((one.type for one in properties if one.name == created.value), "ZONED DATETIME")
    kind = next((kind for kind, name in VALUE_TYPE.items() if name == type_), "zoned")
    return Choice(kind, f"{created.value} is a {type_}")


def _relationship_time(properties: tuple[Property, ...]) -> str | None:
    found = _created(properties)
    return str(found.value) if found.sure else None


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
