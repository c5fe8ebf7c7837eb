"""The shares of a whole read: two streams at once, since the server runs a query in one thread.

On a machine with one core a second stream does not help, and one is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.connector.cores import usable_cores
from ringfence.connector.errors import GraphError
from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.read.id_ranges import IdRange
from ringfence.connector.neo4j.read.vectors import cypher_prefix

STREAMS = 2
MIN_NODES_FOR_STREAMS = 20_000  # fewer are read in one stream
RECORDS_IN_FLIGHT = 2  # each holds a whole block

# A node keeps its id as long as it lives: each is in one share only, whatever is written between
# the start of one stream and of the other. Places in a list would shift. Stripes as long as blocks
# keep the order of the ids where these have no gaps.
IN_SHARE = "WHERE id(n) / $rows % $streams = $stream"
HAS_IDS = "RETURN id(null) AS nothing"  # deprecated: a server to come may not have it


@dataclass(frozen=True, slots=True)
class Share:
    """What one stream reads of all nodes: stripes of ids, in turn with the others."""

    stream: int = 0
    streams: int = 1

    @property
    def where(self) -> str:
        """The condition on a query's n."""
        return IN_SHARE if self.streams > 1 else ""

    @property
    def parameters(self) -> dict[str, object]:
        """The condition's parameters, besides the block size."""
        return {"stream": self.stream, "streams": self.streams} if self.streams > 1 else {}

    def within(self, part: IdRange) -> tuple[str, dict[str, object]]:
        """Return the condition for the share's nodes in a range of ids, and its parameters."""
        return part.where(self.where), {**self.parameters, **part.parameters}


def shares(graph: Graph, expected: int) -> list[Share]:
    """Return the shares in which to read so many nodes."""
    many = expected >= MIN_NODES_FOR_STREAMS and usable_cores() > 1
    streams = STREAMS if many and _has_ids(graph) else 1
    return [Share(stream, streams) for stream in range(streams)]


def _has_ids(graph: Graph) -> bool:
    try:
        graph.read(f"{cypher_prefix(graph)} {HAS_IDS}")
    except GraphError:
        return False
    return True
