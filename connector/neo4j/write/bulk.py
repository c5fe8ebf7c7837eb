"""Create many nodes and relationships quickly: few, wide transactions. For sample graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.bolt import ManagedTransaction
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.quoting import quote
from ringfence.connector.progress import Progress

ROWS_PER_TRANSACTION = 10_000

NODES = """
UNWIND range(0, size($keys) - 1) AS i
CREATE (n:{label} {{{key}: $keys[i], {features}: $features[i], {created}:
  CASE WHEN $times IS NULL THEN datetime.realtime()
  ELSE datetime({{epochSeconds: $times[i] / 1000000000, nanosecond: $times[i] % 1000000000}}) END}})
SET n.{class_} = $classes[i]
SET n += $extra[i]
"""

RELATIONSHIPS = """
UNWIND range(0, size($sources) - 1) AS i
MATCH (a:{label} {{{key}: $sources[i]}})
MATCH (b:{label} {{{key}: $targets[i]}})
CREATE (a)-[:{type} {{{created}:
  CASE WHEN $times IS NULL THEN datetime.realtime()
  ELSE datetime({{epochSeconds: $times[i] / 1000000000, nanosecond: $times[i] % 1000000000}}) END
}}]->(b)
"""

CLASSES = """
UNWIND range(0, size($keys) - 1) AS i
MATCH (n:{label} {{{key}: $keys[i]}})
SET n.{class_} = $classes[i]
"""


def create_nodes(
    graph: Graph,
    mapping: GraphMapping,
    keys: Sequence[int],
    features: NDArray[np.float32],
    classes: Sequence[str | None],
    times: Sequence[int] | None,
    extra: Sequence[dict[str, str]],
    progress: Progress,
) -> None:
    """Create nodes; `times` in nanoseconds, or None for the server's clock; `extra` properties."""
    query = NODES.format(
        label=quote(mapping.classified.label),
        key=quote(mapping.classified.key),
        features=quote(mapping.classified.column_names[0]),
        created=quote(str(mapping.classified.created_at)),
        class_=quote(mapping.class_property),
    )
    for start in range(0, len(keys), ROWS_PER_TRANSACTION):
        part = slice(start, start + ROWS_PER_TRANSACTION)
        graph.run(
            query,
            keys=list(keys[part]),
            features=features[part].tolist(),
            classes=list(classes[part]),
            times=None if times is None else list(times[part]),
            extra=list(extra[part]),
        )
        progress("nodes written", min(start + ROWS_PER_TRANSACTION, len(keys)), len(keys))


def create_relationships(
    graph: Graph,
    mapping: GraphMapping,
    sources: Sequence[int],
    targets: Sequence[int],
    times: Sequence[int] | None,
    progress: Progress,
) -> None:
    """Create relationships of the mapping's first type between existing nodes."""
    kind = mapping.relations[0]
    query = RELATIONSHIPS.format(
        label=quote(mapping.classified.label),
        key=quote(mapping.classified.key),
        type=quote(kind.type),
        created=quote(kind.created_at or "created_at"),
    )
    for start in range(0, len(sources), ROWS_PER_TRANSACTION):
        part = slice(start, start + ROWS_PER_TRANSACTION)
        graph.run(
            query,
            sources=list(sources[part]),
            targets=list(targets[part]),
            times=None if times is None else list(times[part]),
        )
        progress(
            "relationships written", min(start + ROWS_PER_TRANSACTION, len(sources)), len(sources)
        )


def set_classes(
    graph: Graph, mapping: GraphMapping, keys: Sequence[int], classes: Sequence[str]
) -> None:
    """Set the classes of existing nodes."""
    query = CLASSES.format(
        label=quote(mapping.classified.label),
        key=quote(mapping.classified.key),
        class_=quote(mapping.class_property),
    )
    for start in range(0, len(keys), ROWS_PER_TRANSACTION):
        part = slice(start, start + ROWS_PER_TRANSACTION)
        graph.run(query, keys=list(keys[part]), classes=list(classes[part]))


def delete_all_nodes(graph: Graph) -> None:
    """Delete every node of the database, in portions."""
    while graph.write(_delete_some):
        continue


def _delete_some(tx: ManagedTransaction) -> int:
    row = tx.run("MATCH (n) WITH n LIMIT 20000 DETACH DELETE n RETURN count(*) AS n").single()
    return int(row["n"]) if row else 0
