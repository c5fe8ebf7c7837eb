"""Read all labels and relations of a graph into a new mirror, or all relationships into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import CLASSIFIED, Mirror, RelationshipBlock
from ringfence.connector.mirror.format import require_room
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.accounting import note_gaps, open_accounts
from ringfence.connector.neo4j.read.append import add_named_context, find_first_seen
from ringfence.connector.neo4j.read.counts import Counts, count_graph
from ringfence.connector.neo4j.read.odd_times import find_odd_times
from ringfence.connector.neo4j.read.properties import create_mirror, feature_width
from ringfence.connector.neo4j.read.reader import GraphReader, SyncResult, count_rejected
from ringfence.connector.neo4j.read.streams import shares
from ringfence.connector.neo4j.read.watermark import (
    MIN_SHARE_OF_KIND,
    check_time_types,
    horizon,
)

SAMPLE_NODES = 1_000  # that a first read looks at before it reads all


def read_whole(reader: GraphReader, identity: str, why: str) -> SyncResult:
    """Read everything; the watermark is where this read begins."""
    graph, mapping = reader.graph, reader.mapping
    counts = count_graph(graph, mapping)
    if not counts.classified:
        raise GraphError(
            found=f"the graph has no :{mapping.classified.label} nodes",
            needed="[graph] label of the nodes to predict",
            next_step="ringfence init   (lists the labels that exist)",
        )
    require_room(sum(counts.nodes))
    first_read = not mirrors.exists(reader.folder, identity)
    if first_read:
        check_time_types(graph, mapping, first_read=True, sample=SAMPLE_NODES)
    mirror, note = _fill_with_width(reader, identity, counts)
    if first_read and (mirror.odd_relationships or _lacks_nodes(mirror, counts)):
        check_time_types(graph, mapping, first_read=True)  # the sample was unlike the rest
    rows = mirror.rows_of_label(CLASSIFIED)
    first_seen = find_first_seen(reader, mirror, rows, mirror.watermark_ns or 0)
    return SyncResult(mirror, rows, mirror.edge_count, None, why, note, first_seen)


def _lacks_nodes(mirror: Mirror, counts: Counts) -> bool:
    """Whether so many nodes of a label can't be used that their times may be of another kind."""
    return any(
        mirror.count(label) < MIN_SHARE_OF_KIND * count for label, count in enumerate(counts.nodes)
    )


def _fill_with_width(reader: GraphReader, identity: str, counts: Counts) -> tuple[Mirror, str]:
    """Read all nodes with the width of a sample, and with that of most nodes where it differs.

    A width that more than half of all nodes have is the commonest one, so no scan is needed. Only
    a list has a width that must be looked up.
    """
    place, graph, mapping = (reader.folder, identity), reader.graph, reader.mapping
    mirror = create_mirror(*place, graph, mapping, SAMPLE_NODES)
    note = _fill_mirror(reader, mirror, counts)
    if not mapping.features_are_list or 2 * mirror.size > counts.classified:
        return mirror, note
    if feature_width(graph, mapping) != mirror.width:
        mirror = create_mirror(*place, graph, mapping)
        note = _fill_mirror(reader, mirror, counts)
    return mirror, note


def _fill_mirror(reader: GraphReader, mirror: Mirror, counts: Counts) -> str:
    """What arrives during this read is left to the next one."""
    reader.sign(mirror)
    end = horizon(reader.graph, reader.unseen_seconds)
    mirror.watermark_ns = end.watermark_ns
    mirror.first_read.at_targets = choose_anchors(reader.mapping, counts)
    before = open_accounts(reader, mirror)
    for label, expected in enumerate(counts.nodes):
        nodes = reader.label(mirror, label, end.watermark_ns).read_all(expected)
        reader.read_label(mirror, label, nodes, expected)
        _refuse_equal_keys(reader, mirror, label, expected)
    reader.read_relations(mirror, read_all_relations(reader, mirror, counts.nodes))
    mirror.add_relationships([])
    mirror.first_read.finish()
    note_gaps(reader, mirror, before)
    mirror.odd_relationships, odd = find_odd_times(reader)
    empty = [
        f"no node carries the label {node.label}"
        for node, count in zip(reader.mapping.nodes, counts.nodes, strict=True)
        if not count
    ]
    return "; ".join(filter(None, (end.note, *empty, *odd)))


def reread_relationships(reader: GraphReader, mirror: Mirror) -> list[str]:
    """Read all relationships anew, and context that the mirror lacks; return notes on odd times."""
    counts = open_accounts(reader, mirror)
    mirror.first_read.at_targets = choose_anchors(reader.mapping, counts)
    mirror.replace_relationships(_read_with_context(reader, mirror, counts))
    note_gaps(reader, mirror, counts)
    mirror.odd_relationships, notes = find_odd_times(reader)
    return notes


def _read_with_context(
    reader: GraphReader, mirror: Mirror, counts: Counts
) -> Iterator[RelationshipBlock]:
    for block, _ in read_all_relations(reader, mirror, counts.nodes):
        add_named_context(reader, mirror, block)
        yield block


def read_all_relations(
    reader: GraphReader, mirror: Mirror, nodes: Sequence[int]
) -> Iterator[tuple[RelationshipBlock, int]]:
    """Yield all relationships, with the step that their relation is at their anchors.

    `nodes` says about how many nodes each label has.
    """
    for index in range(len(reader.mapping.relations)):
        yield from read_relation(reader, mirror, index, nodes)


def read_relation(
    reader: GraphReader, mirror: Mirror, index: int, nodes: Sequence[int]
) -> Iterator[tuple[RelationshipBlock, int]]:
    """Yield all of one relation, likewise; in two streams where its anchors are many."""
    label, step = anchor_of(reader.mapping, mirror, index)
    ranges = reader.label(mirror, label).ranges(nodes[label])
    relation, from_target = reader.relation(index), mirror.first_read.at_targets[index]
    streams = (
        relation.read_share(share, ranges, from_target)
        for share in shares(reader.graph, nodes[label])
    )
    for block in prefetch(*streams):
        yield block, step


def choose_anchors(mapping: GraphMapping, counts: Counts) -> tuple[bool, ...]:
    """Return by relation whether it is read at its targets: at the end with more nodes."""
    nodes = counts.nodes
    return tuple(nodes[relation.target] > nodes[relation.source] for relation in mapping.relations)


def anchor_of(mapping: GraphMapping, mirror: Mirror, index: int) -> tuple[int, int]:
    """Return at which label a relation is read, and how many others are read there before it."""
    labels = [
        relation.target if at_target else relation.source
        for relation, at_target in zip(mapping.relations, mirror.first_read.at_targets, strict=True)
    ]
    return labels[index], labels[:index].count(labels[index])


def _refuse_equal_keys(reader: GraphReader, mirror: Mirror, label: int, expected: int) -> None:
    node, usable = reader.mapping.nodes[label], mirror.count(label)
    if usable + count_rejected(mirror, label) < expected:
        raise GraphError(
            found=f"{expected} :{node.label} nodes have only {usable} different keys",
            needed=f"a unique {node.key}",
            next_step="ringfence migrate   (creates the constraint, or names the duplicates)",
        )
