"""Continue a first read that died: what it had saved is kept, the rest is read.

The order in which the server returns rows does not matter. The next attempt reads all keys (a
small part of a whole read), compares them with the mirror, and reads the nodes that it lacks; then
the relationships of the nodes whose relationships it lacks. From there on it is an ordinary read
from the watermark at which the first attempt began, with all the checks of one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.connector.mirror import Mirror, RelationshipBlock, plain_key
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.accounting import note_gaps
from ringfence.connector.neo4j.read.comparison import compare_keys
from ringfence.connector.neo4j.read.counts import Counts, count_graph
from ringfence.connector.neo4j.read.odd_times import find_odd_times
from ringfence.connector.neo4j.read.reader import GraphReader
from ringfence.connector.neo4j.read.whole import anchor_of, read_relation

MAX_PART_AGE_SECONDS = 3600.0  # what was read longer ago may have changed too much


def finish_first_read(reader: GraphReader, mirror: Mirror) -> bool:
    """Read what `mirror` lacks; False where something that it has is no longer in the graph."""
    counts = count_graph(reader.graph, reader.mapping)
    if counts.outgoing < mirror.relationship_count:
        return False
    mirror.advance()
    timed = reader.timed_relations()  # those without times, which are read whole, are counted anew
    mirror.raw_counts = {index: n for index, n in mirror.raw_counts.items() if index in timed}
    mirror.rejected.clear()  # they aren't among the keys, so they are read again
    mirror.context_rejected.clear()
    for label in range(len(reader.mapping.nodes)):
        if not _finish_label(reader, mirror, label, counts.nodes[label]):
            return False
    for index in range(len(reader.mapping.relations)):
        reader.read_relations(mirror, _finish_relation(reader, mirror, index, counts))
    mirror.add_relationships([])
    mirror.first_read.finish()
    note_gaps(reader, mirror, counts)
    mirror.odd_relationships, _ = find_odd_times(reader)
    return True


def _finish_label(reader: GraphReader, mirror: Mirror, label: int, expected: int) -> bool:
    compared = compare_keys(reader, mirror, label, expected)
    if len(compared.gone):
        return False
    nodes = reader.label(mirror, label, mirror.watermark_ns or 0).read_ids(compared.missing)
    reader.read_label(mirror, label, prefetch(nodes), expected)
    return True


def _finish_relation(
    reader: GraphReader, mirror: Mirror, index: int, counts: Counts
) -> Iterator[tuple[RelationshipBlock, int]]:
    """One without times is read whole: what joined nodes meanwhile would show nowhere else."""
    if not reader.mapping.relations[index].created_at:
        yield from read_relation(reader, mirror, index, counts.nodes)
        return
    label, step = anchor_of(reader.mapping, mirror, index)
    keys = [plain_key(key) for key in mirror.anchors_left(label, step)]
    from_target = mirror.first_read.at_targets[index]
    for block in prefetch(reader.relation(index).read_of(keys, from_target)):
        yield block, step
