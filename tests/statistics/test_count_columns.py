"""Counts of neighbours as columns: which way of counting keeps the promise in which world.

Worlds are those of `benchmarks.count_columns`. The other way of counting is the negative control.
"""

import importlib

import pytest

pytestmark = pytest.mark.statistics
REPETITIONS = 120


def covered(world, counts, rule="NodeEx"):
    """Mean coverage of the newest nodes, and its standard error."""
    module = importlib.import_module("benchmarks.count_columns")
    row = next(
        row
        for row in module.measure(world, REPETITIONS)
        if (row["counts"], row["rule"]) == (counts, rule)
    )
    return row["covered"], row["covered_se"]


def test_counts_of_now_keep_the_promise_where_nodes_arrive_in_random_order():
    share, error = covered("nodes in random order", "now")
    assert abs(share - 0.9) < 4 * error + 0.01
    share, error = covered("nodes in random order", "cut")
    assert share < 0.8 - 4 * error  # older nodes were cut in a smaller graph


def test_counts_cut_at_a_node_s_own_time_keep_it_where_each_node_brings_as_many():
    share, error = covered("each node brings as many", "cut")
    assert abs(share - 0.9) < 4 * error + 0.01
    share, error = covered("later nodes bring more", "cut")
    assert share < 0.8 - 4 * error


def test_what_trees_count_by_default_keeps_the_promise_where_their_own_label_breaks_it():
    """Counts of context that come with their node, or none; bands fit edges in random order."""
    for counts in ("context", "none"):
        share, error = covered("nodes in random order", counts)
        assert abs(share - 0.9) < 4 * error + 0.01
        share, error = covered("edges in random order", counts, "auto")
        assert share > 0.9 - 4 * error
        share, error = covered("each node brings as many", counts)
        assert abs(share - 0.9) < 4 * error + 0.01
    share, error = covered("later nodes bring more", "none")
    assert abs(share - 0.9) < 4 * error + 0.01
    for counts in ("cut", "context"):  # the control, and the condition of context
        share, error = covered("later nodes bring more", counts)
        assert share < 0.8 - 4 * error


def test_counts_of_now_cover_more_than_promised_where_nodes_were_less_connected_before():
    """No law says so: it is this world's."""
    share, _ = covered("later nodes bring more", "now")
    assert share > 0.9
