"""From the mirror's columns to the arrays that a network takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror, record_keys_at
from ringfence.models import hashing
from ringfence.models.networks.edges import canonical_edges
from ringfence.models.schema import ALWAYS, CLASSIFIED

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scaling:
    """Mean and spread of the training nodes' features; all nodes are scaled by these."""

    mean: Float32s
    spread: Float32s

    @classmethod
    def of(cls, features: Float32s) -> Scaling:
        """Measure `features` [n, d]; a constant column keeps its scale."""
        wide = features.astype(np.float64)
        spread = wide.std(axis=0).astype(np.float32)  # the smallest numbers become 0 here
        spread[spread == 0] = 1.0
        return cls(wide.mean(axis=0).astype(np.float32), spread)

    def __call__(self, features: Float32s) -> Float32s:
        """Return (features - mean) / spread [n, d]."""
        return np.asarray((np.ascontiguousarray(features) - self.mean) / self.spread)


def edge_index(mirror: Mirror, mapping: GraphMapping) -> Ints:
    """Return the edges that networks see [2, E]: undirected types both ways, loops dropped."""
    return edges_of(mirror.edges, mirror.size, mapping)


def edges_of(relationships: Ints, nodes: int, mapping: GraphMapping) -> Ints:
    """Return `edge_index` of relationships (source, target, type) [3, E]."""
    source, target, kind = relationships
    inner_relations = mapping.inner_relations
    if len(inner_relations) < len(mapping.relations):
        inner = np.isin(kind, inner_relations)
        source, target, kind = source[inner], target[inner], kind[inner]
    both = np.array([relation.undirected for relation in mapping.relations], np.bool_)
    back = both[kind] if len(kind) else np.empty(0, np.bool_)
    ends = np.stack(
        [np.concatenate([source, target[back]]), np.concatenate([target, source[back]])]
    )
    return canonical_edges(ends, nodes=nodes, undirected=False)


def induced(edges: Ints, rows: Ints, nodes: int) -> Ints:
    """Return the edges inside `rows`, renumbered to positions in `rows` [2, E'].

    They are sorted in the new numbers: which bits a network gives depends on `rows`, and not on how
    the nodes were numbered before.
    """
    position = np.full(nodes, -1, np.int64)
    position[rows] = np.arange(len(rows))
    renumbered = position[edges]
    inside = renumbered[:, (renumbered >= 0).all(axis=0)]
    return canonical_edges(inside, nodes=len(rows), undirected=False)


def uniforms_of(mirror: Mirror, rows: Ints, seed: int) -> NDArray[np.float64]:
    """Return each node's own number u, from its key and `node_seed` of the version alone [n]."""
    return hashing.uniforms(record_keys_at(mirror, rows), seed, hashing.SCORE)


def node_times(mirror: Mirror, mapping: GraphMapping) -> Ints:
    """Return creation times by row; context without them was always there."""
    times = np.array(mirror.created_ns, np.int64)
    for label, node in enumerate(mapping.nodes):
        if label != CLASSIFIED and not node.created_at:
            times[mirror.rows_of_label(label)] = ALWAYS
    return times


def arrival_times(mirror: Mirror, mapping: GraphMapping) -> Ints | None:
    """Return `node_times`; None where classified nodes have no creation time, but only a key."""
    return node_times(mirror, mapping) if mapping.arrival == "created_at" else None


@dataclass(frozen=True, slots=True, eq=False)
class InputChange:
    """Relationships (source, target, type) [3, E], and more columns by row of the mirror [n, k].

    real: the same relationships with the ends that they have in the graph.
    """

    edges: Ints
    columns: Float32s
    real: Ints

    @property
    def width(self) -> int:
        """How many more columns there are."""
        return int(self.columns.shape[1])

    def widen(self, columns: Float32s, rows: Ints) -> Float32s:
        """Return the columns of some rows with the added ones behind them."""
        return np.concatenate([columns, self.columns[rows]], axis=1)

    def widen_blank(self, blank: Float32s) -> Float32s:
        """Return the row of a node none of whose columns are known."""
        return np.concatenate([blank, np.zeros(self.width, np.float32)])


def permute_ends(edges: Ints, seed: int) -> Ints:
    """Return relationships with their targets permuted within each type.

    Every node keeps how many relationships of a type begin and end at it.

    >>> edges = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [0, 0, 0, 1]])
    >>> changed = permute_ends(edges, 0)
    >>> sorted(changed[1, :3].tolist()), int(changed[1, 3])
    ([4, 5, 6], 7)
    """
    rng, permuted = np.random.default_rng(seed), np.array(edges, np.int64)
    for kind in np.unique(edges[2]):
        places = np.flatnonzero(edges[2] == kind)
        permuted[1, places] = edges[1, rng.permutation(places)]
    return permuted


def changed_targets(mirror: Mirror, change: InputChange) -> dict[int, Ints]:
    """Return where relationships with columns end in a change, -1 for those that are not in it.

    Values stay with their relationship: parallel ones go where the pair of their ends goes.
    """
    targets = {}
    for relation, table in mirror.related.items():
        of_type = change.real[2] == relation
        real, moved = change.real[:, of_type], change.edges[1, of_type]
        pairs = real[0] * mirror.size + real[1]
        order = np.append(np.argsort(pairs), -1)
        sources, ends = table.ends(np.arange(len(table.live)))
        here = sources * mirror.size + ends
        at = order[np.searchsorted(pairs, here, sorter=order[:-1])]
        pairs, moved = np.append(pairs, -1), np.append(moved, -1)
        targets[relation] = np.where(pairs[at] == here, moved[at], -1)
    return targets


def count_columns(mirror_size: int, rows: Ints, counts: Float32s, train: Ints) -> Float32s:
    """Return logarithms of counts, scaled by the training nodes, by row of the mirror [n, k]."""
    table = np.zeros((mirror_size, counts.shape[1]), np.float32)
    table[rows] = np.log1p(counts)
    mean, spread = table[train].mean(axis=0), table[train].std(axis=0)
    table[rows] = (table[rows] - mean) / np.where(spread > 0, spread, 1)
    return table
