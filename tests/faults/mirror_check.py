"""The mirror on disk beside the graph: nodes, creation times, columns and relationships.

Accounts must be there one by one, context where a relationship leads to it: a shop that nobody uses
any more may be there or not.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import encode_key
from ringfence.connector.mirror import CLASSIFIED, Mirror, context_key
from ringfence.jobs.project.graph_read import load_graph
from tests.faults.case import Case
from tests.faults.forms import LabelShape

NODES = """
MATCH (n:{label}) WITH n, n.created_at AS t
RETURN n.{key} AS key, [{columns}] AS values,
  t.epochSeconds * 1000000000 + t.nanosecond AS created_ns, EXISTS {{ (n)<--() }} AS joined
"""
ENDS = "MATCH (a:{source})-[:{type}]->(b:{target}) RETURN a.{a} AS a, b.{b} AS b"

GraphNode = dict[str, Any]


def wrong_rows(case: Case) -> list[str]:
    """Return what the mirror on disk has otherwise than the graph."""
    mirror = load_graph(case.workspace)
    if mirror is None:
        return []  # missing or torn: the next run reads everything again
    violations = []
    for place, shape in enumerate(case.form.labels):
        violations += _wrong_nodes(mirror, place, shape, _graph_nodes(case, place, shape))
    return violations + _wrong_relationships(case, mirror)


def _graph_nodes(case: Case, place: int, shape: LabelShape) -> dict[str, GraphNode]:
    columns = ", ".join(f"n.{column}" for column in shape.columns)
    query = NODES.format(label=case.label + shape.suffix, key=shape.key, columns=columns)
    return {context_key(place, encode_key(row["key"])): row for row in case.graph.read(query)}


def _wrong_nodes(
    mirror: Mirror, place: int, shape: LabelShape, nodes: dict[str, GraphNode]
) -> list[str]:
    rows = {mirror.keys[row]: row for row in mirror.rows_of_label(place).tolist()}
    here = sorted(rows.keys() & nodes.keys())
    values = _mirror_values(mirror, place, shape, [rows[key] for key in here])
    expected = nodes if place == CLASSIFIED else (key for key in nodes if nodes[key]["joined"])
    return [
        *(f"the mirror has a node {key} of its own" for key in sorted(rows.keys() - nodes.keys())),
        *(f"the mirror lacks {key}" for key in sorted(set(expected) - rows.keys())),
        *(
            f"the mirror has another creation time of {key}"
            for key in here
            if place == CLASSIFIED and mirror.created_ns[rows[key]] != nodes[key]["created_ns"]
        ),
        *(
            f"the mirror has other columns of {key}"
            for key, held in zip(here, values, strict=True)
            if not _equal(held, nodes[key]["values"])
        ),
    ]


def _mirror_values(
    mirror: Mirror, place: int, shape: LabelShape, rows: list[int]
) -> Iterable[Sequence[Any]]:
    at: NDArray[np.int64] = np.array(rows, np.int64)
    if not mirror.has_raw_columns:
        return [[vector] for vector in mirror.features[at]]
    columns = mirror.columns(place, at)
    return list(zip(*(columns[name] for name in shape.columns), strict=True))


def _equal(held: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether columns agree; the mirror may have numbers as float32."""
    return all(
        np.array_equal(np.asarray(value, np.float32), np.asarray(wanted, np.float32))
        for value, wanted in zip(held, expected, strict=True)
    )


def _wrong_relationships(case: Case, mirror: Mirror) -> list[str]:
    """Relationships that only one of the two has, between nodes that the mirror has."""
    held = {(mirror.keys[a], mirror.keys[b], kind) for a, b, kind in mirror.edges.T.tolist()}
    there = {
        ends
        for kind in range(len(case.form.relations))
        for ends in _graph_ends(case, kind)
        if (mirror.find(ends[:2]) >= 0).all()
    }
    return [f"the mirror is wrong about {ends}" for ends in sorted(held ^ there)]


def _graph_ends(case: Case, kind: int) -> list[tuple[str, str, int]]:
    source, type_, target = case.form.relations[kind]
    start, end = case.form.labels[source], case.form.labels[target]
    query = ENDS.format(
        source=case.label + start.suffix,
        type=type_,
        target=case.label + end.suffix,
        a=start.key,
        b=end.key,
    )
    return [
        (context_key(source, encode_key(row["a"])), context_key(target, encode_key(row["b"])), kind)
        for row in case.graph.read(query)
    ]
