"""Cypher to paste: the worklist as far as the graph knows of it, and classes to write back.

ringfence runs none of it. A class that stands already is never overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ringfence.connector.keys import Key
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.quoting import quote, quote_text

LIST = """MATCH (class:RingfenceClass {{project: {project}, name: {name}}})
MATCH (n:{label})-[may:MAY_BE {{in_set: true}}]->(class)
MATCH (n)-[set:EVALUATED]->(run:RingfenceRun {{project: {project}}})
{where}RETURN n.{key} AS node, may.p AS p, set.size AS size, run.seq AS run
ORDER BY p DESC, node LIMIT {limit}"""
ON_LIST = """MATCH (n:{label})-[set:EVALUATED]->(run:RingfenceRun {{project: {project}}})
{where}OPTIONAL MATCH (n)-[may:MAY_BE]->(:RingfenceClass {{project: {project}, name: {name}}})
RETURN n.{key} AS node, may.p AS p, set.size AS size, run.seq AS run
ORDER BY run DESC, node LIMIT {limit}"""
LIMIT = 1_000
STATEMENT = """UNWIND [
{rows}
] AS row
MATCH (n:{label} {{{key}: row.key}}) WHERE n.{property} IS NULL
SET n.{property} = row.class;
"""
ROWS_PER_STATEMENT = 1_000


@dataclass(frozen=True, slots=True)
class GraphConditions:
    """The graph's conditions besides the class; None means no condition.

    `list_` is the list that nodes are on, whatever their set holds; "" for those on none.
    """

    min_p: float | None = None
    min_size: int | None = None
    max_size: int | None = None
    run: int | None = None
    known: bool | None = None
    group: tuple[str, str] | None = None
    key: str | None = None
    list_: str | None = None


def worklist_query(
    mapping: GraphMapping, project: str, class_: str, wanted: GraphConditions
) -> str:
    """Return the query; every name and text in it is quoted.

    `known` is about the graph as it is now: a class that no audit has noticed yet counts there.
    """
    conditions = _conditions(mapping, wanted)
    where = f"WHERE {' AND '.join(conditions)}\n" if conditions else ""
    return (LIST if wanted.list_ is None else ON_LIST).format(
        label=quote(mapping.classified.label),
        key=quote(mapping.classified.key),
        project=quote_text(project),
        name=quote_text(class_),
        where=where,
        limit=LIMIT,
    )


def _conditions(mapping: GraphMapping, wanted: GraphConditions) -> list[str]:
    numbers = {
        "may.p > {}": wanted.min_p,
        "set.size >= {}": wanted.min_size,
        "set.size <= {}": wanted.max_size,
        "run.seq = {}": wanted.run,
    }
    conditions = [text.format(value) for text, value in numbers.items() if value is not None]
    if wanted.known is not None:
        is_ = "IS NOT NULL" if wanted.known else "IS NULL"
        conditions.append(f"n.{quote(mapping.class_property)} {is_}")
    if wanted.group is not None:
        property_, value = wanted.group
        conditions.append(f"toString(n.{quote(property_)}) = {quote_text(value)}")
    if wanted.key is not None:
        key = f"toString(n.{quote(mapping.classified.key)})"
        conditions.append(f"{key} STARTS WITH {quote_text(wanted.key)}")
    if wanted.list_ is not None:
        named = f"{quote_text(wanted.list_)} IN set.lists"
        conditions.append(named if wanted.list_ else "set.lists IS NULL")
    return conditions


def outcome_queries(
    mapping: GraphMapping, property_: str, classes: Sequence[tuple[Key, str]]
) -> Iterator[str]:
    """Yield statements that give nodes a class, where they have none; every name is quoted."""
    for start in range(0, len(classes), ROWS_PER_STATEMENT):
        rows = classes[start : start + ROWS_PER_STATEMENT]
        yield STATEMENT.format(
            rows=",\n".join(
                f"  {{key: {_literal(key)}, class: {quote_text(class_)}}}" for key, class_ in rows
            ),
            label=quote(mapping.classified.label),
            key=quote(mapping.classified.key),
            property=quote(property_),
        )


def _literal(key: Key) -> str:
    return quote_text(key) if isinstance(key, str) else repr(key)
