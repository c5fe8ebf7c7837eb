"""Create nodes of any label from rows of properties, and join them by their keys: for samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.progress import Progress, no_progress

ROWS_PER_TRANSACTION = 10_000
Row = Mapping[str, Any]


def create_rows(
    graph: Graph,
    label: str,
    rows: Sequence[Row],
    *,
    stamp: str = "",
    unless_key: str = "",
    progress: Progress = no_progress,
) -> None:
    """Create a node per row; a value of None is a property that is not there.

    Args:
        stamp: property that gets the server's clock, where one is named.
        unless_key: a node that has this property's value already is left as it is.
    """
    create = f"CREATE (n:{quote(label)}) SET n += row"
    if unless_key:
        key = quote(unless_key)
        create = f"MERGE (n:{quote(label)} {{{key}: row[$key]}}) ON CREATE SET n += row"
    clock = f" SET n.{quote(stamp)} = datetime.realtime()" if stamp else ""
    query = f"UNWIND $rows AS row {create}{clock}"
    for done, part in _parts(rows):
        graph.run(query, rows=part, key=unless_key)
        progress("nodes written", done, len(rows))


def join_rows(
    graph: Graph,
    source: tuple[str, str],
    type_: str,
    target: tuple[str, str],
    pairs: Sequence[tuple[Any, Any]],
    stamp: str,
    progress: Progress = no_progress,
    rows: Sequence[Row] = (),
) -> None:
    """Join existing nodes by their keys; `source` and `target` are (label, key).

    rows: properties per pair, where they have some; None is a property that is not there.
    """
    (source_label, one_key), (target_label, two_key) = source, target
    query = (
        f"UNWIND $rows AS row MATCH (a:{quote(source_label)} {{{quote(one_key)}: row[0]}}) "
        f"MATCH (b:{quote(target_label)} {{{quote(two_key)}: row[1]}}) "
        f"CREATE (a)-[r:{quote(type_)}]->(b) SET r += row[2], "
        f"r.{quote(stamp)} = datetime.realtime()"
    )
    joined = zip(pairs, rows or [{}] * len(pairs), strict=True)
    for done, part in _parts([[*pair, properties] for pair, properties in joined]):
        graph.run(query, rows=part)
        progress("relationships written", done, len(pairs))


def set_rows(graph: Graph, label: str, key: str, rows: Sequence[Row]) -> None:
    """Set properties of nodes that exist; each row has the key."""
    query = f"UNWIND $rows AS row MATCH (n:{quote(label)} {{{quote(key)}: row[$key]}}) SET n += row"
    for _, part in _parts(rows):
        graph.run(query, rows=part, key=key)


def _parts(rows: Sequence[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
    for start in range(0, len(rows), ROWS_PER_TRANSACTION):
        part = rows[start : start + ROWS_PER_TRANSACTION]
        yield start + len(part), part
