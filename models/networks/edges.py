"""The edges that every network sees, from a user's relationships."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import Array, as_array, like

__all__ = ["canonical_edges"]


def canonical_edges(edge_index: Any, nodes: int, undirected: bool = True) -> Array:
    """Edges as every network of ringfence reads them.

    Parallel relationships become one edge, a relationship from a node to itself is dropped
    (GCN, GAT and APPNP add their own loop to every node; SAGE keeps the node's own features
    apart), and with ``undirected`` each edge stands in both directions. Messages flow from
    ``edge_index[0]`` to ``edge_index[1]``.

    The result is sorted by target, then source. So the same relationships give the same array
    in whatever order the database returned them, and the same bits out of a network.

    Args:
        edge_index: integers ``[2, relationships]``, each in ``0 .. nodes - 1``.
        nodes: how many nodes there are.
        undirected: whether a relationship counts in both directions.

    Returns:
        int64 ``[2, edges]``, contiguous; a tensor where a tensor was given.

    >>> relationships = np.array([[0, 1, 0, 2], [1, 0, 1, 2]])
    >>> canonical_edges(relationships, nodes=3).tolist()
    [[1, 0], [0, 1]]
    >>> canonical_edges(relationships[:, :1], nodes=3, undirected=False).tolist()
    [[0], [1]]
    """
    given = as_array(edge_index)
    _check(given, nodes)
    source, target = given.astype(np.int64)
    if undirected:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    between = source != target
    position = np.unique(target[between] * nodes + source[between])
    return like(edge_index, np.stack([position % max(nodes, 1), position // max(nodes, 1)]))


def _check(edge_index: Array, nodes: int) -> None:
    if edge_index.ndim != 2 or len(edge_index) != 2 or edge_index.dtype.kind not in "iu":
        raise ValueError(
            f"edge_index is {edge_index.dtype} of shape {list(edge_index.shape)}; integers of "
            "shape [2, relationships] are needed: sources in row 0, targets in row 1"
        )
    if edge_index.size and not (0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes):
        raise ValueError(
            f"edge_index holds node {int(edge_index.min())} to {int(edge_index.max())}, but there "
            f"are {nodes} nodes, 0 to {nodes - 1}; number the nodes by their row in the features"
        )
