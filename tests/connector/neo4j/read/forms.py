"""One graph in two forms: one label with strict features, and several labels with raw columns.

The second form is the same graph with a context label beside it. What a test says of the classified
label must hold in both.
"""

from dataclasses import replace

import pytest

from ringfence.connector.mapping import ColumnMapping, GraphMapping, NodeMapping, RelationMapping
from ringfence.connector.mirror import CLASSIFIED

ONE_LABEL, SEVERAL_LABELS = "one label", "several labels"
FORMS = (ONE_LABEL, SEVERAL_LABELS)
both_forms = pytest.mark.parametrize("form", FORMS)

CONTEXT = "UNWIND ['a', 'b', 'c'] AS name CREATE (:Place {name: name, size: size(name)})"
JOIN_CONTEXT = """
MATCH (n:{label}) WITH n ORDER BY elementId(n)
WITH collect(n) AS all_ UNWIND range(0, size(all_) - 1, 3) AS i
WITH all_[i] AS n WHERE n IS NOT NULL
MATCH (p:Place {{name: 'a'}}) CREATE (n)-[:AT]->(p), (p)-[:HOLDS]->(n)
"""


def in_form(form: str, mapping: GraphMapping) -> GraphMapping:
    """The mapping of one label, or the same label with a context label and relations to and fro.

    Both relations are read at the nodes of the classified label, of which there are more.
    """
    if form == ONE_LABEL:
        return mapping
    columns = tuple(ColumnMapping(name) for name in mapping.classified.column_names)
    nodes = (
        replace(mapping.classified, columns=columns),
        NodeMapping("Place", "name", (ColumnMapping("size"),)),
    )
    context = (RelationMapping(0, "AT", 1), RelationMapping(1, "HOLDS", 0))
    relations = (*mapping.relations, *context)
    return GraphMapping(nodes, relations, mapping.class_property, mapping.time_kind)


def add_context(form: str, graph, label: str = "Thing") -> None:
    """Give the graph the context that the second form reads; some nodes are joined with it."""
    if form == SEVERAL_LABELS:
        graph.run(CONTEXT)
        graph.run(JOIN_CONTEXT.format(label=label))


def node_keys(mirror) -> list[str]:
    """The keys of the classified label's nodes, in the order of their rows."""
    return mirror.keys.take(mirror.rows_of_label(CLASSIFIED).tolist())


def new_keys(result) -> list[str]:
    """The keys of the nodes that a read brought."""
    return result.mirror.keys.take(result.new_rows.tolist())


def properties(mirror, keys=None) -> dict[str, object]:
    """The property `x` of nodes by their keys, whatever kind of table has it."""
    keys = node_keys(mirror) if keys is None else keys
    rows = mirror.find(keys)
    if mirror.has_raw_columns:
        return dict(zip(keys, mirror.columns(CLASSIFIED, rows)["x"], strict=True))
    return dict(zip(keys, mirror.features[rows].tolist(), strict=True))


def links(mirror) -> set[tuple[str, str, int]]:
    """All relationships by the keys of their ends, and their relation."""
    keys = list(mirror.keys)
    source, target, kind = mirror.edges.tolist()
    return {(keys[a], keys[b], k) for a, b, k in zip(source, target, kind, strict=True)}


def inner_links(mirror) -> set[tuple[str, str, int]]:
    """Those of them that join nodes of the classified label."""
    rows = mirror.labels[mirror.edges[:2]]
    inside = (rows == CLASSIFIED).all(axis=0)
    keys = list(mirror.keys)
    ends = mirror.edges[:, inside].tolist()
    return {(keys[a], keys[b], k) for a, b, k in zip(*ends, strict=True)}


def contents(mirror) -> tuple[object, ...]:
    """What a mirror holds, whatever the numbers of its rows.

    Classes are left out: one that became known is no difference.
    """
    nodes = {}
    for label, table in enumerate(mirror.tables):
        rows = mirror.rows_of_label(label)
        columns = table.columns(mirror.places_of(rows))
        values = zip(*columns.values(), strict=True) if columns else ((),) * len(rows)
        for row, held in zip(rows.tolist(), values, strict=True):
            time = mirror.created_ns[row] if label == CLASSIFIED else None
            nodes[mirror.keys[row]] = (label, held, time)
    return nodes, links(mirror), set(mirror.rejected)
