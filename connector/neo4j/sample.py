"""A bounded look at a graph: some nodes of a label with all they have and what joins them.

Nodes are drawn at random, for the first ones of a label are its oldest. Long lists and texts are
cut on the server, so that a look costs the same whatever the properties hold.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.inspect import OUR_TYPES, OURS
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.neo4j.read.incremental import language
from ringfence.connector.neo4j.read.typed.nodes import IN_RANGE
from ringfence.connector.neo4j.read.typed.values import plain_column

SAMPLE_NODES = 2_000
MAX_OVERDRAW = 2  # nodes are drawn by chance: about as many as asked for, at most twice as many
MAX_LIST_ITEMS = 64
MAX_TEXT_CHARS = 500
MAX_NEIGHBOURS = 100  # of one node that are looked at
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

RELATIONSHIP_PROPERTIES = """
MATCH (:{source})-[r:{type}]->(:{target}) WITH r LIMIT $rows
UNWIND keys(r) AS name
WITH name, r[name] AS value, valueType(r[name]) AS type
RETURN name, replace(type, ' NOT NULL', '') AS type, count(*) AS n,
  collect(CASE WHEN type STARTS WITH 'STRING' OR type STARTS WITH 'LIST' THEN null ELSE {value} END)
    AS values
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
    """A relationship type between a label and another, with which sampled nodes have it."""

    type: str
    outgoing: bool
    label: str
    has: tuple[bool, ...]
    relationships: int

    @property
    def share(self) -> float:
        """Share of the sampled nodes that have one."""
        return sum(self.has) / len(self.has) if self.has else 0.0


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

    @property
    def sampled(self) -> int:
        """How many nodes were looked at."""
        return max((one.sampled for one in self.properties.values()), default=0)


def sample_label(graph: Graph, label: str, count: int, nodes: int = SAMPLE_NODES) -> LabelSample:
    """Return what a random sample of a label's nodes has."""
    query = NODES.format(
        label=quote(label),
        items=MAX_LIST_ITEMS,
        chars=MAX_TEXT_CHARS,
        value=IN_RANGE.format("x[1]"),
    )
    share = min(1.0, nodes / max(count, 1))
    rows = graph.read(f"{language(graph)} {query}", share=share, nodes=MAX_OVERDRAW * nodes)
    properties: dict[str, SampledProperty] = {}
    for at, row in enumerate(rows):
        values = plain_column(row["values"])
        for name, type_, value, size in zip(
            row["names"], row["types"], values, row["sizes"], strict=True
        ):
            found = properties.setdefault(name, SampledProperty(name, [None] * len(rows)))
            found.values[at] = value
            found.types[type_] += 1
            if size is not None:
                found.sizes[size] += 1
    ids = [row["id"] for row in rows]
    unique = frozenset(row["name"] for row in graph.read(UNIQUE, label=label))
    ordered = dict(sorted(properties.items()))
    relations, degrees = _sample_relations(graph, ids)
    return LabelSample(label, count, ordered, relations, unique, degrees)


def _sample_relations(
    graph: Graph, ids: list[str]
) -> tuple[tuple[SampledRelation, ...], tuple[int, ...]]:
    place = {id_: at for at, id_ in enumerate(ids)}
    has: dict[tuple[str, bool, str], list[bool]] = {}
    counts: Counter[tuple[str, bool, str]] = Counter()
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
            has.setdefault(key, [False] * len(ids))[place[row["id"]]] = True
            counts[key] += int(row["n"])
    found = [SampledRelation(*key, tuple(flags), counts[key]) for key, flags in has.items()]
    ordered = sorted(found, key=lambda one: (-one.relationships, one.type, one.label))
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
    for row in graph.read(f"{language(graph)} {query}", rows=rows):
        found = properties.setdefault(row["name"], SampledProperty(row["name"], []))
        found.types[row["type"]] += int(row["n"])
        found.values += plain_column(row["values"])
    for found in properties.values():
        found.values += [None] * (sampled - len(found.values))
    return properties


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
