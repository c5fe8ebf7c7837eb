"""How the properties of a label's nodes are queried, and the blocks that the results become.

Strict features are one vector per node, packed by the server where it can; a node without usable
ones can't be used. Raw columns come as the graph has them, whatever they are. Both are queried in
two ways: the first trusts the values, the second checks every one of them and is used only if the
first was refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import GraphMapping, NodeMapping
from ringfence.connector.mirror import Mirror
from ringfence.connector.mirror.blocks import AnyBlock
from ringfence.connector.neo4j.bolt import BrokenRecordError
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.columns import FLOAT_BYTES, node_block, raw_block
from ringfence.connector.neo4j.read.values import plain_column
from ringfence.connector.neo4j.read.vectors import (
    CHECKED,
    LISTED,
    MAX_FLOAT32,
    MAX_VECTOR_NUMBERS,
    PACKED,
    STORED,
    TRUSTED,
    cypher_prefix,
    unpacked,
)

MAX_FEATURES_PER_BLOCK = 1 << 20  # numbers: the server holds them as objects
MAX_ROWS_PER_BLOCK = 2_000  # of raw columns: a list of 10,000 numbers per node may be among them

# The driver has no years beyond 9999: such a value is missing.
IN_RANGE = """CASE WHEN {0} IS :: DATE OR {0} IS :: LOCAL DATETIME OR {0} IS :: ZONED DATETIME
  THEN CASE WHEN {0}.year < 1 OR {0}.year > 9999 THEN null ELSE {0} END ELSE {0} END"""


@dataclass(frozen=True, slots=True)
class Question:
    """Columns of a query's `block`, as Cypher after RETURN, and the parameters that they need."""

    cypher: str
    parameters: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a record has of all nodes of a block, whatever their properties."""

    ids: list[str]
    keys: list[Any]
    classes: list[Any]
    ns: list[Any]


class Properties(Protocol):
    """The properties of one label's nodes."""

    def limit_rows(self, rows: int) -> int:
        """Return how many nodes a block may have, `rows` at most."""

    def questions(self) -> list[Question]:
        """Return the ways to ask for them, the next one for where the server refused the last."""

    def make_block(self, label: int, answer: Answer, values: list[Any]) -> AnyBlock:
        """Return a record, with the columns that a question asked for, as a block."""


@dataclass(frozen=True, slots=True)
class StrictFeatures:
    """A vector of `width` numbers per node: one list property, or a property per number."""

    graph: Graph
    mapping: GraphMapping
    width: int

    @property
    def is_packed(self) -> bool:
        """Whether the server packs lists into vectors."""
        return self.graph.has_vectors and 0 < self.width <= MAX_VECTOR_NUMBERS

    def limit_rows(self, rows: int) -> int:
        """Return so many that a block has few enough numbers."""
        return max(1, min(rows, MAX_FEATURES_PER_BLOCK // max(self.width, 1)))

    def questions(self) -> list[Question]:
        """Ask for packed vectors; where a number can't be packed, check every number first."""
        names = self.mapping.classified.column_names
        properties = [f"n.{quote(name)}" for name in names]
        is_list = self.mapping.features_are_list
        list_ = properties[0] if is_list else f"[{', '.join(properties)}]"
        if not self.is_packed:
            return [Question(f"[n IN block | {list_}] AS features")]
        kind = STORED if is_list else LISTED
        sizes: dict[str, object] = {
            "together": MAX_VECTOR_NUMBERS // self.width,
            "width": self.width,
        }
        trusted, checked = (
            f"{PACKED.format(list_=list_, kind=kind, vector=vector)} AS features"
            for vector in (TRUSTED, CHECKED)
        )
        return [Question(trusted, sizes), Question(checked, {**sizes, "largest": MAX_FLOAT32})]

    def make_block(self, label: int, answer: Answer, values: list[Any]) -> AnyBlock:
        """Return the usable nodes with their features."""
        (features,) = values
        matrix = unpacked(features, self.width) if self.is_packed else features
        ids, keys, classes, ns = answer.ids, answer.keys, answer.classes, answer.ns
        return node_block(self.width, ids, keys, matrix, classes, ns)


@dataclass(frozen=True, slots=True)
class RawColumns:
    """The columns of a label as the graph has them."""

    node: NodeMapping

    def limit_rows(self, rows: int) -> int:
        """Return as many as may be held at a time."""
        return min(rows, MAX_ROWS_PER_BLOCK)

    def questions(self) -> list[Question]:
        """Ask for the values as they are; where one can't travel, check every value."""
        return [Question(self._columns("{0}")), Question(self._columns(IN_RANGE))]

    def _columns(self, value: str) -> str:
        return ",\n  ".join(
            f"[n IN block | {value.format(f'n.{quote(name)}')}] AS c{place}"
            for place, name in enumerate(self.node.column_names)
        )

    def make_block(self, label: int, answer: Answer, values: list[Any]) -> AnyBlock:
        """Return the usable nodes with their columns."""
        columns = [plain_column(column) for column in values]
        return raw_block(label, answer.ids, answer.keys, columns, answer.classes, answer.ns)


REFUSALS = (GraphError, BrokenRecordError)
"""What a question ends with whose values can't be packed, or can't travel."""


def properties_of(graph: Graph, mapping: GraphMapping, label: int, width: int) -> Properties:
    """Return how the properties of a label are read; `width` is that of strict features."""
    if mapping.features_are_strict:
        return StrictFeatures(graph, mapping, width)
    return RawColumns(mapping.nodes[label])


def create_mirror(
    folder: Path, identity: str, graph: Graph, mapping: GraphMapping, sample: int | None = None
) -> Mirror:
    """Return an empty mirror for what the mapping reads; `sample` is that of `feature_width`."""
    if mapping.features_are_strict:
        return mirrors.create(folder, identity, feature_width(graph, mapping, sample))
    names, related = mapping.column_names, mapping.relation_columns
    return mirrors.create_raw(folder, identity, names, related)


def feature_width(graph: Graph, mapping: GraphMapping, sample: int | None = None) -> int:
    """Return how many numbers a node's features have: the commonest length where it is a list.

    Byte arrays hold float32 numbers, four bytes each, the lowest byte first. All nodes are looked
    at, which takes the server 0.4 s for 100,000; with `sample` only so many, if one has a list.
    """
    label, names = mapping.classified.label, mapping.classified.column_names
    if not mapping.features_are_list:
        return len(names)
    features = f"n.{quote(names[0])}"
    some = f"WITH n LIMIT {int(sample)} WITH n " if sample else ""
    lists = (
        f"{cypher_prefix(graph)} MATCH (n:{quote(label)}) {some}"
        f"WHERE (valueType({features}) STARTS WITH 'LIST' "
        f"OR valueType({features}) STARTS WITH 'VECTOR')"
    )
    integers = f"valueType({features}) STARTS WITH 'LIST<INTEGER'"
    rows = graph.read(
        f"{lists} WITH size({features}) AS width, count(*) AS n, "
        f"sum(CASE WHEN {integers} THEN 1 ELSE 0 END) AS integers "
        "RETURN width, 2 * integers > n AS are_integers ORDER BY n DESC, width LIMIT 1"
    )
    if not rows and sample:
        return feature_width(graph, mapping)
    if not rows:
        raise GraphError(
            found=f"no :{label} node has a list in {names[0]}",
            needed="[graph] features: a list property, or a list of numeric properties",
            next_step="ringfence doctor",
        )
    width = int(rows[0]["width"])
    if not rows[0]["are_integers"]:
        return width
    # bytes have the type of a list of integers: one of these says which they are
    (example,) = graph.read(
        f"{lists} AND {integers} AND size({features}) = $width "
        f"RETURN {features} AS features LIMIT 1",
        width=width,
    )
    return width // FLOAT_BYTES if isinstance(example["features"], bytes) else width
