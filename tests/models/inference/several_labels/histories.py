"""Typed graphs that grow, lose and change, at random."""

import numpy as np

from ringfence.models.inference.graph import InferenceGraph, RemovedEntries
from ringfence.models.inference.several_labels import typed_graph
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.schema import Relation, TypedSchema

SCHEMAS = [
    TypedSchema(("a",), (Relation(0, "r", 0),)),
    TypedSchema(("a", "b"), (Relation(0, "r", 1),)),
    TypedSchema(("a", "b"), (Relation(0, "r", 1, undirected=False), Relation(1, "s", 0))),
    TypedSchema(
        ("a", "b", "c"),
        (
            Relation(0, "r", 1),
            Relation(0, "s", 1),
            Relation(2, "t", 1),
            Relation(1, "u", 1),
            Relation(0, "v", 0, undirected=False),
            Relation(2, "after", 0, cut=True),
            Relation(1, "w", 2, undirected=False),
        ),
    ),
]


class History:
    """A typed graph that grows, loses and changes; the graph for inference is made anew."""

    def __init__(self, schema, seed):
        self.schema = schema
        self.rng = np.random.default_rng(seed)
        self.widths = [int(width) for width in self.rng.integers(1, 6, len(schema.labels))]
        self.labels = np.empty(0, np.int64)
        self.features = [np.empty((0, width), np.float32) for width in self.widths]
        self.edges = set()
        self.base = set()
        self.base_number = 0
        self.version = 0
        self.altered = np.empty(0, np.int64)

    def step(self, rows, late, deleted, changed, merge):
        """Add rows with relationships, late relationships, deletions and other columns."""
        rng, before = self.rng, len(self.labels)
        self.version += 1
        labels = rng.integers(0, len(self.schema.labels), rows)
        if not before:
            labels = np.concatenate([np.arange(len(self.schema.labels)), labels])
        self.labels = np.concatenate([self.labels, labels])
        for label, width in enumerate(self.widths):
            fresh = rng.normal(size=((labels == label).sum(), width)).astype(np.float32)
            self.features[label] = np.concatenate([self.features[label], fresh])
        for row in range(before, len(self.labels)):
            self._link(row, int(rng.integers(0, 4)))
        for _ in range(late):
            self._link(int(rng.integers(0, max(before, 1))), 1)
        known = sorted(self.edges)
        for at in rng.permutation(len(known))[:deleted]:
            self.edges.discard(known[at])
        self._alter(changed, before)
        if merge:
            self.base, self.base_number = set(self.edges), self.version

    def _link(self, row, count):
        for _ in range(count):
            relation = int(self.rng.integers(0, len(self.schema.relations)))
            one = self.schema.relations[relation]
            source = int(self.rng.choice(np.flatnonzero(self.labels == one.source)))
            target = int(self.rng.choice(np.flatnonzero(self.labels == one.target)))
            if self.labels[row] == one.source:
                source = row
            elif self.labels[row] == one.target:
                target = row
            self.edges.add((source, target, relation))

    def _alter(self, count, before):
        rows = np.unique(self.rng.integers(0, max(before, 1), count))
        self.altered = rows[rows < before]
        places = self.graph().places
        for row in self.altered:
            label = self.labels[row]
            self.features[label][places[row]] = self.rng.normal(size=self.widths[label])

    def graph(self):
        """Base, late and removed part, as the mirror has them."""
        n = len(self.labels)
        late_nodes, *late = entries_by_node(self.edges - self.base)
        gone = entries_by_node(self.base - self.edges)
        nodes, offsets, others, codes = entries_by_node(self.base)
        dense = np.zeros(n + 1, np.int64)
        dense[nodes + 1] = np.diff(offsets)
        relationships = InferenceGraph(
            np.cumsum(dense), others, codes, late_nodes, *late, n,
            np.ones(len(self.schema.relations), np.bool_), np.zeros(n, np.int64), self.version,
            RemovedEntries(*gone), base=self.base_number,
        )  # fmt: skip
        return typed_graph(relationships, self.schema, self.labels)

    def network(self, layers, degrees=False, seed=0):
        """An untrained network for this graph."""
        options = {"hidden": 6, "layers": layers, "degrees": degrees, "seed": seed}
        return build_typed("typed_sage", self.schema, self.widths, 3, **options).eval()


def entries_by_node(edges):
    """Entries at both ends of relationships: nodes, offsets, others, codes."""
    entries = sorted(
        [(target, source, 2 * kind + 1) for source, target, kind in edges]
        + [(source, target, 2 * kind) for source, target, kind in edges]
    )
    node, other, code = np.array(entries, np.int64).reshape(-1, 3).T
    nodes, starts = np.unique(node, return_index=True)
    offsets = np.append(starts, len(node)).astype(np.int64)
    return nodes, offsets, other.astype(np.int32), code.astype(np.uint8)
