"""Which nodes the worklist holds under each filter, against the predictions themselves."""

import json

import pytest
from sqlalchemy import select, text

from ringfence.connector.store.engine import open_store
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import (
    WorklistFilter,
    read_worklist,
    whole_worklist,
)
from ringfence.connector.store.tables import grouping, prediction, run
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import CLASSES, Plan, fill_store

MULE = CLASSES.index("mule")


@pytest.fixture(scope="module")
def queries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worklist")
    graph = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
    values = {"project": "p", "graph": graph, "audit": {"groups": ["region"]}}
    settings = load_values(values, folder / "ringfence.toml", {})
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=4, per_run=60))
    yield ProjectQueries(store, "p")
    store.close()


@pytest.fixture(scope="module")
def predictions(queries):
    """Every prediction with its p-value of the class mule, its group and its run's time."""
    query = (
        select(prediction, grouping.c.value, run.c.decided_ns)
        .join(grouping, grouping.c.node_key == prediction.c.node_key)
        .join(run, run.c.seq == prediction.c.seq)
    )
    return [row | {"p": json.loads(row["p_values"])[MULE]} for row in queries.rows(query)]


def time_of(predictions, seq):
    return next(row["decided_ns"] for row in predictions if row["seq"] == seq)


FILTERS = {
    "min_p": ({"min_p": 0.5}, lambda row: row["p"] > 0.5),
    "max_size": ({"max_size": 1}, lambda row: row["size"] <= 1),
    "min_size": ({"min_size": 3}, lambda row: row["size"] >= 3),
    "degrees": ({"min_degree": 5, "max_degree": 7}, lambda row: 5 <= row["degree"] <= 7),
    "run": ({"run": 2}, lambda row: row["seq"] == 2),
    "group": ({"group": "region", "value": "north"}, lambda row: row["value"] == "north"),
    "known": ({"known": "yes"}, lambda row: row["labelled_ns"] is not None),
    "unknown": ({"known": "no"}, lambda row: row["labelled_ns"] is None),
    "claimed": ({"state": "claimed"}, lambda row: False),
    "all": ({}, lambda row: True),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_gives_the_nodes_that_the_predictions_say(queries, predictions, name):
    changes, keeps = FILTERS[name]
    wanted = WorklistFilter("mule", **({"known": "any"} | changes))
    expected = [
        (row["p"], row["node_key"])
        for row in predictions
        if "mule" in json.loads(row["classes"]) and keeps(row)
    ]
    found = [(node.p, node.node_key) for node in whole_worklist(queries, wanted)]
    assert found == sorted(expected, reverse=True)
    assert found or name == "claimed"


def test_dates_are_those_of_the_runs(queries, predictions):
    begin, end = time_of(predictions, 2), time_of(predictions, 3)
    wanted = WorklistFilter("mule", known="any", from_ns=begin, until_ns=end + 1)
    assert {node.seq for node in whole_worklist(queries, wanted)} == {2, 3}
    never = WorklistFilter("mule", known="any", from_ns=2**60 * 2)
    assert read_worklist(queries, never) == []


def test_equal_p_values_are_not_lost_between_pages(queries):
    """Six decimals make few ties here; the place in the list has the key for them."""
    wanted = WorklistFilter("mule", known="any")
    whole = list(whole_worklist(queries, wanted))
    tie = whole[5]
    after = WorklistFilter("mule", known="any", after=(tie.p, tie.node_key))
    assert read_worklist(queries, after, rows=3) == whole[6:9]


def test_a_page_reads_the_index_alone_and_in_its_order(queries):
    wanted = (
        "SELECT node_key, p FROM worklist_entry WHERE project = 'p' AND class = 'mule' "
        "AND known = 0 AND (p, node_key) < (0.5, 'x') ORDER BY p DESC, node_key DESC LIMIT 50"
    )
    with queries.store.reading() as connection:
        plan = [row[3] for row in connection.execute(text(f"EXPLAIN QUERY PLAN {wanted}"))]
    assert len(plan) == 1
    assert "COVERING INDEX worklist_entry_by_p" in plan[0]
    assert "TEMP B-TREE" not in plan[0]
