"""A bounded sample of a graph: some nodes of a label with their properties and relationships.

Nodes are drawn at random, since the first ones of a label are its oldest. Long lists and texts are
cut on the server, so that a sample costs the same whatever the properties hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ringfence.connector.neo4j.bolt import Record
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.inspect import OUR_TYPES, OURS
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.properties import IN_RANGE
from ringfence.connector.neo4j.read.values import plain_column
from ringfence.connector.neo4j.read.vectors import cypher_prefix

SAMPLE_NODES = 2_000
MAX_OVERDRAW = 2  # nodes are drawn by chance: about as many as asked for, at most twice as many
MAX_LIST_ITEMS = 64
MAX_TEXT_CHARS = 500
MAX_VALUE_CHARS = 60  # of a neighbour's property
MAX_NEIGHBOURS = 100  # of one node that are looked at
MAX_NEIGHBOUR_VALUES = 16  # different ones of a property, at the neighbours of one node
MAX_COUNT_FOR_DISTINCT = 2_000_000  # nodes whose keys are compared one by one

NODES = """
MATCH (n:{label}) WHERE rand() < $share
WITH n LIMIT $nodes
WITH n, [k IN keys(n) | [k, n[k], valueType(n[k])]] AS found
RETURN elementId(n) AS id, [x IN found | x[0]] AS names,
  [x IN found | replace(x[2], ' NOT NULL', '')] AS types,
  [x IN found | CASE WHEN x[2] STARTS WITH 'LIST' THEN x[1][..{items}]
    WHEN x[2] STARTS WITH 'STRING' THEN left(x[1], {chars}) ELSE {value} END] AS values,
  [x IN found | CASE WHEN x[2] STARTS WITH 'LIST' THEN size(x[1]) END] AS sizes
"""

RELATIONSHIPS = """
UNWIND $ids AS id MATCH (n) WHERE elementId(n) = id
CALL (n) {{ MATCH (n)-[r]-(m) RETURN r, m LIMIT {neighbours} }}
RETURN id, type(r) AS type, startNode(r) = n AS outgoing, labels(m) AS labels, count(r) AS n
"""

NEIGHBOURS = """
UNWIND $ids AS id MATCH (n) WHERE elementId(n) = id
CALL (n) {{ MATCH (n)-[r]-(m) RETURN r, m ORDER BY elementId(m) LIMIT {neighbours} }}
WITH id, type(r) AS type, startNode(r) = n AS outgoing, labels(m) AS labels, collect(m) AS others
RETURN id, type, outgoing, labels, [m IN others | elementId(m)] AS who, COLLECT {{
  UNWIND others AS m UNWIND keys(m) AS k
  WITH k, collect(DISTINCT left(toStringOrNull(m[k]), {chars}))[..{values}] AS there
  RETURN [k, there] }} AS values
"""

RARE = """
MATCH (m:{other}) WITH m LIMIT $nodes
MATCH (m)-[r]-(:{label}) RETURN type(r) AS type LIMIT 1
"""

RELATIONSHIP_PROPERTIES = """
MATCH (:{source})-[r:{type}]->(:{target}) WITH r LIMIT $rows
UNWIND keys(r) AS name
WITH name, r[name] AS value, valueType(r[name]) AS type
RETURN name, replace(type, ' NOT NULL', '') AS type, count(*) AS n,
  collect(CASE WHEN type STARTS WITH 'STRING' OR type STARTS WITH 'LIST' THEN null ELSE {value} END)
    AS values
"""

STARTING = "MATCH (:{source})-[r:{type}]->() RETURN count(r) AS n"
JOINING = """
MATCH (a:{source})-[r:{type}]->(b:{target}) WHERE rand() < $share
WITH a, r, b LIMIT $rows
WITH a, b, [k IN keys(r) | [k, r[k], valueType(r[k])]] AS found
RETURN [x IN found | x[0]] AS names,
  [x IN found | replace(x[2], ' NOT NULL', '')] AS types,
  [x IN found | CASE WHEN x[2] STARTS WITH 'LIST' THEN x[1][..{items}]
    WHEN x[2] STARTS WITH 'STRING' THEN left(x[1], {chars}) ELSE {value} END] AS values,
  [x IN found | CASE WHEN x[2] STARTS WITH 'LIST' THEN size(x[1]) END] AS sizes,
  a.{class_} AS source_class, b.{class_} AS target_class
"""

UNIQUE = """
SHOW CONSTRAINTS YIELD type, labelsOrTypes, properties
WHERE type CONTAINS 'UNIQUENESS' AND size(properties) = 1 AND $label IN labelsOrTypes
RETURN properties[0] AS name
"""

CLOCK = "RETURN datetime.realtime().epochSeconds AS seconds"


@dataclass(slots=True)
class SampledProperty:
    """One property over the sampled nodes: its values (None: missing), types and list lengths."""

    name: str
    values: list[Any]
    types: Counter[str] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)

    @property
    def sampled(self) -> int:
        """How many nodes were looked at."""
        return len(self.values)

    @property
    def there(self) -> int:
        """How many of them have the property, also where its value could not travel."""
        return sum(self.types.values())

    @property
    def share(self) -> float:
        """Share of the nodes that have it."""
        return self.there / self.sampled if self.sampled else 0.0

    @property
    def type(self) -> str:
        """The commonest type, as Cypher names it."""
        return self.types.most_common(1)[0][0] if self.types else "NULL"


@dataclass(frozen=True, slots=True)
class SampledRelation:
    """A relationship type between a label and another, with which sampled nodes have it.

    `numbers` are how many of them each sampled node has, as far as they were looked at.
    """

    type: str
    outgoing: bool
    label: str
    has: tuple[bool, ...]
    relationships: int
    numbers: tuple[int, ...] = ()

    @property
    def share(self) -> float:
        """Share of the sampled nodes that have one."""
        return sum(self.has) / len(self.has) if self.has else 0.0


@dataclass(frozen=True, slots=True)
class SampledNeighbours:
    """The neighbours of each sampled node through a type, and their properties as texts.

    A column has the different values at all neighbours of a node. `who` and columns have None for
    nodes without such a neighbour.
    """

    type: str
    outgoing: bool
    label: str
    who: list[tuple[str, ...] | None]
    columns: dict[str, list[tuple[str, ...] | None]]


@dataclass(frozen=True, slots=True)
class LabelSample:
    """A label, how many nodes carry it, and what a sample of them has.

    `degrees` are the relationships of each sampled node, as far as they were looked at.
    """

    name: str
    count: int
    properties: dict[str, SampledProperty]
    relations: tuple[SampledRelation, ...]
    unique: frozenset[str]
    degrees: tuple[int, ...] = ()
    ids: tuple[str, ...] = ()

    @property
    def sampled(self) -> int:
        """How many nodes were looked at."""
        return max((property_.sampled for property_ in self.properties.values()), default=0)


@dataclass(frozen=True, slots=True)
class RelationSample:
    """Properties of sampled relationships, and the classes at their ends, None where unknown."""

    properties: dict[str, SampledProperty]
    source_classes: list[str | None]
    target_classes: list[str | None]


def sample_label(graph: Graph, label: str, count: int, nodes: int = SAMPLE_NODES) -> LabelSample:
    """Return what a random sample of a label's nodes has."""
    query = NODES.format(
        label=quote(label),
        items=MAX_LIST_ITEMS,
        chars=MAX_TEXT_CHARS,
        value=IN_RANGE.format("x[1]"),
    )
    share = min(1.0, nodes / max(count, 1))
    rows = graph.read(f"{cypher_prefix(graph)} {query}", share=share, nodes=MAX_OVERDRAW * nodes)
    ids = [row["id"] for row in rows]
    unique = frozenset(row["name"] for row in graph.read(UNIQUE, label=label))
    relations, degrees = _sample_relations(graph, ids)
    return LabelSample(label, count, _properties(rows), relations, unique, degrees, tuple(ids))


def _properties(rows: Sequence[Record]) -> dict[str, SampledProperty]:
    """The properties of sampled nodes or relationships by name, each with a value per row."""
    properties: dict[str, SampledProperty] = {}
    for at, row in enumerate(rows):
        values = plain_column(row["values"])
        for name, type_, value, size in zip(
            row["names"], row["types"], values, row["sizes"], strict=True
        ):
            property_ = properties.setdefault(name, SampledProperty(name, [None] * len(rows)))
            property_.values[at] = value
            property_.types[type_] += 1
            if size is not None:
                property_.sizes[size] += 1
    return dict(sorted(properties.items()))


def sample_neighbours(graph: Graph, sample: LabelSample) -> list[SampledNeighbours]:
    """Return who stands at the other end of each relationship type of the sampled nodes."""
    place = {id_: at for at, id_ in enumerate(sample.ids)}
    query = NEIGHBOURS.format(
        neighbours=MAX_NEIGHBOURS, chars=MAX_VALUE_CHARS, values=MAX_NEIGHBOUR_VALUES
    )
    met: dict[tuple[str, bool, str], SampledNeighbours] = {}
    for row in graph.read(query, ids=list(sample.ids)):
        for label in row["labels"]:
            if label.startswith(OURS) or row["type"] in OUR_TYPES:
                continue
            key = (row["type"], bool(row["outgoing"]), label)
            near = met.setdefault(key, SampledNeighbours(*key, [None] * len(place), {}))
            at = place[row["id"]]
            near.who[at] = tuple(row["who"])
            for name, values in row["values"]:
                column = near.columns.setdefault(name, [None] * len(place))
                column[at] = tuple(sorted(values)) or None
    return list(met.values())


def find_rare_neighbours(graph: Graph, label: str, others: Sequence[str]) -> dict[str, str]:
    """Return labels one hop from `label` that its sample did not meet, with a relationship type."""
    met = {}
    for other in others:
        rows = graph.read(RARE.format(label=quote(label), other=quote(other)), nodes=SAMPLE_NODES)
        if rows:
            met[other] = str(rows[0]["type"])
    return met


def count_nodes(graph: Graph) -> int:
    """Return how many nodes the graph has, those of ringfence not counted; none is looked at."""
    (row,) = graph.read("MATCH (n) RETURN count(n) AS n")
    mine = [
        row["label"]
        for row in graph.read("CALL db.labels() YIELD label RETURN label")
        if row["label"].startswith(OURS)
    ]
    counts = [graph.read(f"MATCH (n:{quote(name)}) RETURN count(n) AS n")[0]["n"] for name in mine]
    return int(row["n"]) - sum(map(int, counts))


def _sample_relations(
    graph: Graph, ids: list[str]
) -> tuple[tuple[SampledRelation, ...], tuple[int, ...]]:
    place = {id_: at for at, id_ in enumerate(ids)}
    numbers: dict[tuple[str, bool, str], list[int]] = {}
    degrees = [0] * len(ids)
    query = RELATIONSHIPS.format(neighbours=MAX_NEIGHBOURS)
    for row in graph.read(query, ids=ids):
        if row["type"] in OUR_TYPES:
            continue
        degrees[place[row["id"]]] += int(row["n"])
        for label in row["labels"]:
            if label.startswith(OURS):
                continue
            key = (row["type"], bool(row["outgoing"]), label)
            numbers.setdefault(key, [0] * len(ids))[place[row["id"]]] += int(row["n"])
    relations = [
        SampledRelation(*key, tuple(n > 0 for n in each), sum(each), tuple(each))
        for key, each in numbers.items()
    ]
    ordered = sorted(
        relations, key=lambda relation: (-relation.relationships, relation.type, relation.label)
    )
    return tuple(ordered), tuple(degrees)


def sample_relationship(
    graph: Graph, source: str, type_: str, target: str, rows: int = SAMPLE_NODES
) -> dict[str, SampledProperty]:
    """Return the properties of some relationships of a type between two labels."""
    query = RELATIONSHIP_PROPERTIES.format(
        source=quote(source),
        type=quote(type_),
        target=quote(target),
        value=IN_RANGE.format("value"),
    )
    pattern = f"(:{quote(source)})-[r:{quote(type_)}]->(:{quote(target)})"
    total = f"MATCH {pattern} WITH r LIMIT $rows RETURN count(r) AS n"
    sampled = int(graph.read(total, rows=rows)[0]["n"])
    properties: dict[str, SampledProperty] = {}
    for row in graph.read(f"{cypher_prefix(graph)} {query}", rows=rows):
        property_ = properties.setdefault(row["name"], SampledProperty(row["name"], []))
        property_.types[row["type"]] += int(row["n"])
        property_.values += plain_column(row["values"])
    for property_ in properties.values():
        property_.values += [None] * (sampled - len(property_.values))
    return properties


def sample_relation(
    graph: Graph,
    source: str,
    type_: str,
    target: str,
    class_property: str,
    rows: int = SAMPLE_NODES,
) -> RelationSample:
    """Return what a random sample of a type's relationships between two labels has."""
    names = {"source": quote(source), "type": quote(type_), "target": quote(target)}
    count = int(graph.read(STARTING.format(**names))[0]["n"])
    query = JOINING.format(
        **names,
        class_=quote(class_property),
        items=MAX_LIST_ITEMS,
        chars=MAX_TEXT_CHARS,
        value=IN_RANGE.format("x[1]"),
    )
    share = min(1.0, rows / max(count, 1))
    sampled = graph.read(f"{cypher_prefix(graph)} {query}", share=share, rows=MAX_OVERDRAW * rows)
    return RelationSample(
        _properties(sampled),
        [_class(row["source_class"]) for row in sampled],
        [_class(row["target_class"]) for row in sampled],
    )


def _class(value: object) -> str | None:
    return None if value is None else str(value)


def count_distinct(graph: Graph, label: str, name: str, count: int) -> tuple[int, int] | None:
    """Return how many nodes have a property and how many values it has; None for too many nodes."""
    if count > MAX_COUNT_FOR_DISTINCT:
        return None
    (row,) = graph.read(
        f"MATCH (n:{quote(label)}) WITH n.{quote(name)} AS value "
        "RETURN count(value) AS n, count(DISTINCT value) AS distinct"
    )
    return int(row["n"]), int(row["distinct"])


def joined_labels(graph: Graph, type_: str) -> list[str]:
    """Return which labels a relationship type joins, by a look at some of them."""
    rows = graph.read(
        f"MATCH (a)-[:{quote(type_)}]->(b) WITH a, b LIMIT {SAMPLE_NODES} "
        "WITH DISTINCT labels(a) AS a, labels(b) AS b RETURN a, b LIMIT 10"
    )
    return [f"(:{':'.join(row['a'])})->(:{':'.join(row['b'])})" for row in rows]


def server_seconds(graph: Graph) -> int:
    """Return the server's clock, in seconds since 1970."""
    return int(graph.read(CLOCK)[0]["seconds"])
