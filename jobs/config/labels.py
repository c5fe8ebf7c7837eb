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


class RelationshipColumn(Section):
    """One property of relationships that is fed to the scorer; a text names the property alone."""

    property: str = Field(description="Property of the relationships.")
    kind: str | None = Field(
        None, description="Kind of its values, as of node columns; without it the values decide."
    )
    options: dict[str, bool | int | float | str] = Field(
        default_factory=dict, description="Options of the kind's encoder."
    )

    def mapping(self) -> ColumnMapping:
        """Return the column as the connector takes it."""
        return ColumnMapping(self.property, self.kind, dict(self.options))


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
    columns: list[str | RelationshipColumn] = Field(
        default_factory=list,
        description="Only beside `[[graph.nodes]]`: properties of the relationships that are fed "
        'to the scorer, by name or as `{property = "amount", kind = "number"}`. With columns every '
        "relationship counts, parallel ones and those from a node to itself included; without, "
        "parallel ones count once.",
    )

    def column_mappings(self) -> tuple[ColumnMapping, ...]:
        """Return the columns as the connector takes them."""
        return tuple(
            ColumnMapping(column) if isinstance(column, str) else column.mapping()
            for column in self.columns
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
    for relation in relations:
        where = f"[[graph.relationships]] {relation.type}"
        _check_names("[[graph.relationships]]", [relation.type])
        for end, label in (("from", relation.source), ("to", relation.target)):
            if not label:
                raise ValueError(
                    f"{where}: {end} is missing; beside [[graph.nodes]] "
                    f"every type says which labels it joins ({', '.join(labels)})"
                )
            if label not in labels:
                raise ValueError(
                    f"{where}: {end} = {label!r} is none of the labels "
                    f"in [[graph.nodes]] ({', '.join(labels)})"
                )
        _check_relation_columns(where, relation)
        if relation.after_evaluation and classified not in (relation.source, relation.target):
            raise ValueError(
                f"{where}: after_evaluation = true needs {classified}, the classified label, at "
                f"one end; it joins {relation.source} and {relation.target}"
            )
    triples = [f"{relation.source} {relation.type} {relation.target}" for relation in relations]
    if twice := _duplicates(triples):
        raise ValueError(f"[[graph.relationships]]: {twice[0]} is named twice")


def _check_relation_columns(where: str, relation: RelationshipSettings) -> None:
    names = [column.name for column in relation.column_mappings()]
    _check_names(f"{where}: columns", names)
    if twice := _duplicates(names):
        raise ValueError(f"{where}: column {twice[0]} is named twice")
    if names and relation.after_evaluation:
        raise ValueError(
            f"{where}: columns ({', '.join(names)}) beside after_evaluation = true, which cuts the "
            "type where nodes are evaluated; take one of the two out"
        )


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
            place[relation.source],
            relation.type,
            place[relation.target],
            relation.undirected,
            (relation.created_at or None) if "created_at" in relation.model_fields_set else None,
            relation.after_evaluation,
            relation.column_mappings(),
        )
        for relation in relations
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
