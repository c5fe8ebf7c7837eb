"""Reading the whole graph: two streams at once, for the server works on a query in one thread.

On a machine with one core there is nobody to work on a second stream, and one is read.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.columns import NodeBlock
from ringfence.connector.neo4j.read.id_ranges import IdRange, id_ranges
from ringfence.connector.neo4j.read.incremental import (
    MAX_FEATURES_PER_BLOCK,
    RECORDS_IN_FLIGHT,
    RelationshipBlock,
    language,
    node_blocks,
    relationship_block,
    relationship_names,
)

STREAMS = 2
MIN_NODES_FOR_STREAMS = 20_000  # fewer are read in one stream

ALL_RELATIONSHIPS = """
MATCH (n:{label}) {where}
WITH collect(n) AS found
UNWIND range(0, size(found) - 1, $rows) AS start
WITH found[start .. start + $rows] AS part
RETURN [n IN part | n.{key}] AS sources,
  [n IN part | [(n)-[:{type}]->(other:{label}) | other.{key}]] AS targets
"""

# A node keeps its id as long as it lives: each is in one share only, whatever is written between
# the start of one stream and of the other. Places in a list would shift. Stripes as long as blocks
# keep the order of the ids where these have no gaps.
IN_SHARE = "WHERE id(n) / $rows % $streams = $stream"
HAS_IDS = "RETURN id(null) AS nothing"  # deprecated: a server to come may not have it


@dataclass(frozen=True, slots=True)
class Share:
    """What one stream reads of all nodes: stripes of ids, in turn with the others."""

    stream: int
    streams: int

    @property
    def where(self) -> str:
        """The condition on a query's n."""
        return IN_SHARE if self.streams > 1 else ""

    @property
    def parameters(self) -> dict[str, object]:
        """What the condition asks for, besides the block size."""
        return {"stream": self.stream, "streams": self.streams} if self.streams > 1 else {}


def all_nodes(
    graph: Graph, mapping: GraphMapping, width: int, rows: int, expected: int
) -> Iterator[NodeBlock]:
    """Yield all nodes; `expected` says about how many there are."""
    rows = max(1, min(rows, MAX_FEATURES_PER_BLOCK // STREAMS // max(width, 1)))
    ranges = id_ranges(graph, mapping.label, expected, language(graph))
    return prefetch(*(
        _nodes(graph, mapping, width, rows, share, ranges) for share in shares(graph, expected)
    ))  # fmt: skip


def all_relationships(
    graph: Graph, mapping: GraphMapping, rows: int, expected: int
) -> Iterator[RelationshipBlock]:
    """Yield all relationships, of each node in a block of its own type and stream."""
    ranges = id_ranges(graph, mapping.label, expected, language(graph))
    return prefetch(*(
        _relationships(graph, mapping, rows, share, ranges) for share in shares(graph, expected)
    ))  # fmt: skip


def shares(graph: Graph, expected: int) -> list[Share]:
    """Return the shares in which to read so many nodes."""
    many = expected >= MIN_NODES_FOR_STREAMS and usable_cores() > 1
    streams = STREAMS if many and _has_ids(graph) else 1
    return [Share(stream, streams) for stream in range(streams)]


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _has_ids(graph: Graph) -> bool:
    try:
        graph.read(f"{language(graph)} {HAS_IDS}")
    except GraphError:
        return False
    return True


def _nodes(
    graph: Graph,
    mapping: GraphMapping,
    width: int,
    rows: int,
    share: Share,
    ranges: list[IdRange],
) -> Generator[NodeBlock, None, None]:
    for part in ranges:
        asked = {**share.parameters, **part.parameters}
        yield from node_blocks(graph, mapping, width, rows, part.where(share.where), **asked)


def _relationships(
    graph: Graph, mapping: GraphMapping, rows: int, share: Share, ranges: list[IdRange]
) -> Generator[RelationshipBlock, None, None]:
    for index, kind in enumerate(mapping.relationships):
        names = relationship_names(mapping, kind)
        for part in ranges:
            where, asked = part.where(share.where), {**share.parameters, **part.parameters}
            query = f"{language(graph)} {ALL_RELATIONSHIPS.format(**names, where=where)}"
            for record in graph.stream(query, RECORDS_IN_FLIGHT, rows=rows, **asked):
                yield relationship_block(index, record["sources"], record["targets"])
