"""Which node of a small context label is connected: what means of columns can't tell."""

import numpy as np

from ringfence.models.baselines.boosted_trees import tree_chances
from ringfence.models.inference.graph import graph_of_types
from ringfence.models.inference.several_labels import typed_graph
from ringfence.models.schema import Relation, TypedSchema
from ringfence.models.trees import identity
from ringfence.models.trees.columns import ColumnInputs, neighbour_table
from ringfence.models.trees.identity import identity_table

ORDERS, SHIPPERS = 300, 3
SCHEMA = TypedSchema(("Order", "Shipper"), (Relation(0, "BY", 1),))


def orders_by_shipper():
    """Orders whose class is their shipper, of whom no column is usable."""
    shipper = np.random.default_rng(0).integers(0, SHIPPERS, ORDERS)
    edges = np.stack([np.arange(ORDERS), ORDERS + shipper, np.zeros(ORDERS, np.int64)])
    relationships = graph_of_types(edges, ORDERS + SHIPPERS, np.array([True]))
    labels = np.repeat([0, 1], [ORDERS, SHIPPERS])
    graph = typed_graph(relationships, SCHEMA, labels)
    return ColumnInputs(graph, lambda _label, rows: np.empty((len(rows), 0), np.float32)), shipper


def accuracy(table, truth):
    seen = ORDERS // 2
    chances = tree_chances(table[:seen], truth[:seen], table[seen:], SHIPPERS).chances
    return (chances.argmax(axis=1) == truth[seen:]).mean()


def test_means_of_no_columns_are_blind_to_a_class_one_hop_away_and_identities_are_not():
    inputs, shipper = orders_by_shipper()
    rows = np.arange(ORDERS)
    near = neighbour_table(inputs, rows)
    assert near.tolist() == [[1.0]] * ORDERS  # one neighbour each: nothing else
    assert accuracy(near, shipper) < 0.5
    table = identity_table(inputs, rows)
    assert np.array_equal(table.argmax(axis=1), shipper)
    assert accuracy(np.concatenate([near, table], axis=1), shipper) == 1.0


def test_large_labels_get_no_column_for_each_node(monkeypatch):
    inputs, _ = orders_by_shipper()
    monkeypatch.setattr(identity, "MAX_NODES", 2)
    assert identity_table(inputs, np.arange(5)).shape == (5, 0)
