"""Go on with a first read that died: what it had saved stays, the rest is read.

Nothing hangs on the order in which the server gives rows. The next attempt asks for all keys (a
small part of a whole read), compares them with the mirror, and reads the nodes that it lacks; then
the relationships of the nodes whose relationships it lacks. From there on it is an ordinary read
from the watermark at which the first attempt began, with all the checks of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.connector.keys import decode_key
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.comparison import IDS_PER_QUERY, compare_keys
from ringfence.connector.neo4j.read.incremental import read_nodes_by_id, read_relationships_from
from ringfence.connector.neo4j.read.watermark import count_relationships

if TYPE_CHECKING:
    from ringfence.connector.neo4j.read.sync import GraphReader

MAX_PART_AGE_SECONDS = 3600.0  # what was read longer ago may have changed too much


def finish_first_read(reader: GraphReader, mirror: Mirror, expected: int) -> bool:
    """Read what `mirror` lacks; False where something that it has is no longer in the graph."""
    if count_relationships(reader.graph, reader.mapping) < mirror.relationship_count:
        return False
    mirror.advance()
    mirror.raw_counts = {}  # types without times, which alone are counted so, are read whole
    mirror.rejected.clear()  # they aren't among the keys, so they are read again
    missing, gone = compare_keys(reader, mirror)
    if len(gone):
        return False
    for start in range(0, len(missing), IDS_PER_QUERY):
        ids = missing[start : start + IDS_PER_QUERY]
        nodes = read_nodes_by_id(reader.graph, reader.mapping, mirror.width, ids, reader.rows)
        reader.add_nodes(mirror, prefetch(nodes), expected)
    for index in range(len(reader.mapping.relationships)):
        _finish_relationships(reader, mirror, index)
    return True


def _finish_relationships(reader: GraphReader, mirror: Mirror, index: int) -> None:
    """A type without times is read whole: what joined nodes meanwhile would show nowhere else."""
    timed = reader.mapping.relationships[index].created_at is not None
    left = mirror.sources_left(index) if timed else mirror.node_keys()
    keys = [decode_key(key) for key in left]
    sources = read_relationships_from(reader.graph, reader.mapping, index, keys, reader.rows)
    reader.add_sources(mirror, prefetch(sources))
