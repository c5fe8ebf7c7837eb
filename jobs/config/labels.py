"""Several labels: `[[graph.nodes]]`, `[[graph.relationships]]` and `[graph.columns]`.

One label is classified, the others are its context. What can be seen without the graph is checked
here; `ringfence doctor` compares the names with the live graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field

from ringfence.connector.mapping import ColumnMapping, NodeMapping, RelationMapping
from ringfence.jobs.config.section import Section

MAX_LABELS = 64
MAX_RELATIONS = 128  # the mirror packs a relation into seven bits
LEAVE, USE = "leave", "use"


class NodeSettings(Section):
    """One label: the classified one, or context of it."""

    label: str = Field(description="Label of the nodes.")
    key: str = Field(description="Property that is unique per node of the label (text or number).")
    role: Literal["classified", "context"] = Field(
        "context",
        description="`classified`: its nodes get prediction sets; exactly one label has this role.",
    )
    columns: list[str] = Field(
        default_factory=list,
        description="Properties that are fed to the network, of any kind: numbers, texts, "
        "categories, dates, points, lists; a missing value is a value of its own.",
    )
    created_at: str = Field(
        "",
        description="Property with the time at which a node was written, near the server's clock. "
        "Empty: new nodes are keys not yet known, and a node's time is that of the run that first "
        "saw it. A business date is a column, not a creation time.",
    )


class RelationshipSettings(Section):
    """One relationship type that carries messages."""

    source: str = Field(
        "",
        alias="from",
        description="Label where it starts; only beside `[[graph.nodes]]`, and needed there.",
    )
    type: str = Field(description="Relationship type.")
    target: str = Field("", alias="to", description="Label that it points to; likewise.")
    undirected: bool = Field(
        True, description="Messages flow both ways; false keeps the stored direction."
    )
    created_at: str | None = Field(
        "created_at",
        description="Property with the creation time. An empty text says there is none: then "
        "relationships are read together with the new nodes they touch. Beside `[[graph.nodes]]` "
        "there is none unless it is named.",
    )
    after_evaluation: bool = Field(
        False,
        description="Only beside `[[graph.nodes]]`: the type is set only after a node was "
        "evaluated (as a decision or an investigation is), so it is cut at calibration nodes and "
        "due nodes alike.",
    )


class ColumnSettings(Section):
    """What becomes of one property; a text says the same: `use`, `leave`, or a kind."""

    use: bool = Field(True, description="Whether the property is fed to the network.")
    kind: str | None = Field(
        None, description="Kind of its values; without it the training nodes' values decide."
    )
    options: dict[str, bool | int | float | str] = Field(
        default_factory=dict, description="Options of the kind's encoder."
    )


ColumnChoice = str | ColumnSettings
ColumnTable = dict[str, dict[str, ColumnChoice]]


def check_nodes(nodes: list[NodeSettings], columns: ColumnTable, never: Mapping[str, str]) -> None:
    """Raise `ValueError` where the labels contradict themselves.

    `never` has the properties of the classified label that can't be columns, with what they are.
    """
    roles = [node.label for node in nodes if node.role == "classified"]
    if len(roles) != 1:
        names = f" ({', '.join(roles)})" if roles else ""
        raise ValueError(
            f'[[graph.nodes]]: {len(roles)} labels{names} have role = "classified"; exactly one is '
            "predicted, for a second one make a second project"
        )
    if len(nodes) > MAX_LABELS:
        raise ValueError(f"[[graph.nodes]]: {len(nodes)} labels; {MAX_LABELS} are the most")
    if twice := _duplicates(node.label for node in nodes):
        raise ValueError(f"[[graph.nodes]]: the label {twice[0]} is named twice")
    for node in nodes:
        _check_names(f"[[graph.nodes]] of {node.label!r}", [node.label, node.key, *node.columns])
        if twice := _duplicates(node.columns):
            raise ValueError(f"[[graph.nodes]] of {node.label}: column {twice[0]} is named twice")
        used = [column.name for column in node_columns(node, columns)]
        for name in used if node.role == "classified" else ():
            if name in never:
                raise ValueError(
                    f"[[graph.nodes]] of {node.label}: the column {name} is {never[name]}; fed to "
                    "the network it would give away the class"
                )
    unknown = sorted(set(columns) - {node.label for node in nodes})
    if unknown:
        raise ValueError(f"[graph.columns] names {unknown[0]!r}, which no [[graph.nodes]] has")


def check_relations(nodes: list[NodeSettings], relations: list[RelationshipSettings]) -> None:
    """Raise `ValueError` where a relationship type joins what isn't there, or stands twice."""
    if len(relations) > MAX_RELATIONS:
        raise ValueError(
            f"[[graph.relationships]]: {len(relations)} types; {MAX_RELATIONS} are the most"
        )
    labels = [node.label for node in nodes]
    (classified,) = (node.label for node in nodes if node.role == "classified")
    for one in relations:
        _check_names("[[graph.relationships]]", [one.type])
        for end, label in (("from", one.source), ("to", one.target)):
            if not label:
                raise ValueError(
                    f"[[graph.relationships]] {one.type}: {end} is missing; beside [[graph.nodes]] "
                    f"every type says which labels it joins ({', '.join(labels)})"
                )
            if label not in labels:
                raise ValueError(
                    f"[[graph.relationships]] {one.type}: {end} = {label!r} is none of the labels "
                    f"in [[graph.nodes]] ({', '.join(labels)})"
                )
        if one.after_evaluation and classified not in (one.source, one.target):
            raise ValueError(
                f"[[graph.relationships]] {one.type}: after_evaluation = true needs {classified}, "
                f"the classified label, at one end; it joins {one.source} and {one.target}"
            )
    triples = [f"{one.source} {one.type} {one.target}" for one in relations]
    if twice := _duplicates(triples):
        raise ValueError(f"[[graph.relationships]]: {twice[0]} is named twice")


def node_mappings(nodes: list[NodeSettings], columns: ColumnTable) -> tuple[NodeMapping, ...]:
    """Return the labels as the connector takes them, the classified one first."""
    ordered = sorted(nodes, key=lambda node: node.role != "classified")
    return tuple(
        NodeMapping(
            node.label, node.key, tuple(node_columns(node, columns)), node.created_at or None
        )
        for node in ordered
    )


def relation_mappings(
    nodes: tuple[NodeMapping, ...], relations: list[RelationshipSettings]
) -> tuple[RelationMapping, ...]:
    """Return the relationship types by the places of their labels in `nodes`."""
    place = {node.label: at for at, node in enumerate(nodes)}
    return tuple(
        RelationMapping(
            place[one.source],
            one.type,
            place[one.target],
            one.undirected,
            (one.created_at or None) if "created_at" in one.model_fields_set else None,
            one.after_evaluation,
        )
        for one in relations
    )


def node_columns(node: NodeSettings, columns: ColumnTable) -> Iterator[ColumnMapping]:
    """Yield the columns of a label: those it names, and those that `[graph.columns]` adds."""
    choices = {name: _column(choice) for name, choice in columns.get(node.label, {}).items()}
    for name in dict.fromkeys([*node.columns, *choices]):
        choice = choices.get(name, ColumnSettings())
        if choice.use:
            yield ColumnMapping(name, choice.kind, dict(choice.options))


def _column(choice: ColumnChoice) -> ColumnSettings:
    if isinstance(choice, ColumnSettings):
        return choice
    if choice in (LEAVE, USE):
        return ColumnSettings(use=choice == USE)
    return ColumnSettings(kind=choice)


def _duplicates(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _check_names(where: str, names: Iterable[str]) -> None:
    if any(not name or "\x00" in name for name in names):
        raise ValueError(f"{where}: a name is empty or holds a NUL character")
