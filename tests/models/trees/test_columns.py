"""Columns of trees, counted by hand."""

import numpy as np

from ringfence.models.inference.graph import InferenceGraph
from ringfence.models.inference.several_labels.graph import typed_graph
from ringfence.models.schema import ALWAYS, Relation, TypedSchema
from ringfence.models.trees.columns import (
    ColumnInputs,
    CountRule,
    column_names,
    encoded_columns,
    tree_columns,
)

SCHEMA = TypedSchema(("Case", "Drug"), (Relation(0, "TOOK", 1), Relation(0, "LIKE", 0, False)))
# cases 0, 1, 2 and drugs 3, 4; case 0 took both, case 1 drug 3; 0 -> 2 and 1 -> 2 are alike
LABELS = np.array([0, 0, 0, 1, 1])
ENDS = np.array([[0, 0, 1, 0, 1], [3, 4, 3, 2, 2]])
TYPES = np.array([0, 0, 0, 1, 1])
FEATURES = [
    np.array([[1.0], [2.0], [3.0]], np.float32),
    np.array([[10.0, 0.0], [20.0, 1.0]], np.float32),
]


def relationships():
    """Each relationship at both ends, its code 2 * type, plus one where it points to."""
    (source, target), nobody = ENDS, np.empty(0, np.int64)
    node, other = np.concatenate([target, source]), np.concatenate([source, target])
    code = np.concatenate([2 * TYPES + 1, 2 * TYPES])
    order = np.lexsort((code, other, node))
    offsets = np.append(0, np.cumsum(np.bincount(node, minlength=5)))
    undirected = np.array([relation.undirected for relation in SCHEMA.relations])
    return InferenceGraph(
        offsets, other[order].astype(np.int32), code[order].astype(np.uint8),
        nobody, np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8),
        5, undirected, np.zeros(5, np.int64), 0,
    )  # fmt: skip


def inputs(times=None, seen=None, classified=True):
    graph, rule = typed_graph(relationships(), SCHEMA, LABELS), CountRule(times, classified)
    made = encoded_columns(graph, FEATURES, rule)
    return ColumnInputs(made.graph, made.encode, rule, seen)


def test_counts_and_means_by_relation_and_direction():
    names = column_names(SCHEMA, [["age"], ["dose", "new"]], CountRule())
    assert names == [
        "age", "rev_TOOK Drug: count", "rev_TOOK Drug: mean dose", "rev_TOOK Drug: mean new",
        "LIKE Case: count", "LIKE Case: mean age",
    ]  # fmt: skip
    nan = np.nan
    np.testing.assert_array_equal(
        tree_columns(inputs(), np.array([2, 0, 1])),
        [[3, 0, nan, nan, 2, 1.5], [1, 2, 15, 0.5, 0, nan], [2, 1, 10, 0, 0, nan]],
    )


def test_counts_stop_at_the_nodes_own_time_and_means_do_not():
    times = np.array([30, 10, 20, ALWAYS, ALWAYS])
    row = tree_columns(inputs(times), np.array([2]))[0]
    assert row[4] == 1  # case 0 is later than case 2
    assert row[5] == 1.5
    assert tree_columns(inputs(times), np.array([0]))[0, 1] == 2  # context was always there


def test_neighbours_of_the_classified_label_are_counted_only_where_the_rule_says_so():
    names = column_names(SCHEMA, [["age"], ["dose", "new"]], CountRule(classified=False))
    assert "rev_TOOK Drug: count" in names
    assert "LIKE Case: count" not in names
    rows = np.array([2, 0, 1])
    everything, without = tree_columns(inputs(), rows), tree_columns(inputs(classified=False), rows)
    np.testing.assert_array_equal(without, np.delete(everything, 4, axis=1))


def test_only_neighbours_that_are_seen_count():
    seen = np.array([True, False, True, True, True])
    np.testing.assert_array_equal(tree_columns(inputs(seen=seen), np.array([2]))[0, 4:], [1, 1])


def test_columns_of_some_rows_are_those_of_all_rows():
    everyone = tree_columns(inputs(), np.arange(3))
    for row in range(3):
        np.testing.assert_array_equal(tree_columns(inputs(), np.array([row]))[0], everyone[row])
