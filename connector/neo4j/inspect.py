"""What is in a graph: labels, properties with their types, relationship types; by a sample."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote

SAMPLE_ROWS = 2_000
OURS = ("Ringfence", "CoverageAudit")
OUR_TYPES = ("MAY_BE", "EVALUATED", "AUDITS")


@dataclass(frozen=True, slots=True)
class Property:
    """A property as the sample shows it: its commonest type, how often it is there, how varied."""

    name: str
    type: str
    share: float
    distinct: int
    sampled: int
    unique: bool

    @property
    def is_number(self) -> bool:
        """Whether it holds one number."""
        return self.type in {"INTEGER", "FLOAT"}

    @property
    def is_number_list(self) -> bool:
        """Whether it holds a list of numbers."""
        return self.type.startswith("LIST<") and ("FLOAT" in self.type or "INTEGER" in self.type)

    @property
    def is_time(self) -> bool:
        """Whether it holds a datetime."""
        return self.type in {"ZONED DATETIME", "LOCAL DATETIME"}


@dataclass(frozen=True, slots=True)
class RelationshipType:
    """A type that connects nodes of the label."""

    name: str
    count: int
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class LabelView:
    """A label, how many nodes carry it, what they have and what connects them."""

    name: str
    count: int
    properties: tuple[Property, ...]
    relationships: tuple[RelationshipType, ...]


def count_labels(graph: Graph) -> dict[str, int]:
    """Return the user's labels with their counts, largest first; ringfence's own are left out."""
    names = [
        row["label"]
        for row in graph.read("CALL db.labels() YIELD label RETURN label")
        if not row["label"].startswith(OURS)
    ]
    counts = {
        name: int(graph.read(f"MATCH (n:{quote(name)}) RETURN count(n) AS n")[0]["n"])
        for name in names
    }
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def inspect_label(graph: Graph, label: str) -> LabelView:
    """Return one label's properties and relationship types, by a sample."""
    quoted = quote(label)
    count = int(graph.read(f"MATCH (n:{quoted}) RETURN count(n) AS n")[0]["n"])
    types = graph.read(
        f"MATCH (:{quoted})-[r]->(b) WHERE b:{quoted} WITH r LIMIT {SAMPLE_ROWS * 10} "
        "RETURN DISTINCT type(r) AS type"
    )
    kinds = []
    for name in (row["type"] for row in types if row["type"] not in OUR_TYPES):
        total = graph.read(f"MATCH (:{quoted})-[r:{quote(name)}]->() RETURN count(r) AS n")[0]["n"]
        pattern = f"(:{quoted})-[x:{quote(name)}]->()"
        kinds.append(RelationshipType(name, int(total), _properties(graph, pattern, set())))
    kinds.sort(key=lambda kind: -kind.count)
    unique = _unique(graph, label)
    return LabelView(label, count, _properties(graph, f"(x:{quoted})", unique), tuple(kinds))


def _unique(graph: Graph, label: str) -> set[str]:
    rows = graph.read(
        "SHOW CONSTRAINTS YIELD type, labelsOrTypes, properties "
        "WHERE type CONTAINS 'UNIQUENESS' AND size(properties) = 1 AND $label IN labelsOrTypes "
        "RETURN properties[0] AS name",
        label=label,
    )
    return {row["name"] for row in rows}


def _properties(graph: Graph, pattern: str, unique: set[str]) -> tuple[Property, ...]:
    rows = graph.read(
        f"MATCH {pattern} WITH x LIMIT {SAMPLE_ROWS} WITH collect(x) AS found "
        "UNWIND found AS x UNWIND keys(x) AS key "
        "RETURN key, valueType(x[key]) AS type, count(*) AS n, count(DISTINCT x[key]) AS distinct, "
        "size(found) AS sampled ORDER BY key, n DESC"
    )
    properties: dict[str, Property] = {}
    for row in rows:
        name, sampled = row["key"], int(row["sampled"])
        before = properties.get(name)
        share = row["n"] / sampled + (before.share if before else 0.0)
        distinct = int(row["distinct"]) + (before.distinct if before else 0)
        type_ = before.type if before else str(row["type"]).replace(" NOT NULL", "")
        properties[name] = Property(name, type_, share, distinct, sampled, name in unique)
    return tuple(properties.values())
