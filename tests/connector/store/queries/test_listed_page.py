"""Nodes of a list and of none, in their order and page by page, as their rows have them."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.queries.listed_page import place_on_list
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.worklist import (
    beside_on_list,
    count_worklist,
    read_worklist,
    whole_worklist,
)
from ringfence.connector.store.queries.worklist_filter import WorklistFilter
from ringfence.connector.store.tables import prediction, run
from ringfence.jobs.config.load import load_values
from ringfence.jobs.samples.audit_store import CLASSES, Plan, fill_store
from ringfence.jobs.worklist.list_choice import choose_list

LISTS = [
    {"name": "suspects", "class": "mule", "may_be_wrong": 0.3},
    {"name": "clear", "not": "mule", "may_be_wrong": 0.05},
]
MULE = CLASSES.index("mule")


@pytest.fixture
def queries(store, tmp_path):
    graph = {"label": "A", "key": "id", "features": "f", "class_property": "kind"}
    values = {"project": "listed", "graph": graph, "lists": LISTS}
    settings = load_values(values, tmp_path / "ringfence.toml", {})
    fill_store(store, settings, Plan(runs=3, per_run=80))
    return ProjectQueries(store, "listed")


@pytest.fixture
def rows(queries):
    columns = prediction.c
    query = select(columns.node_key, columns.seq, columns.lists, columns.label, columns.p_values)
    return queries.rows(query.where(columns.project == "listed"))


def listed(queries, name, **changes):
    wanted = WorklistFilter("", **({"list_": name, "known": "any"} | changes))
    return choose_list(queries, wanted).wanted


def expected(rows, name):
    of_list = [
        (-row["seq"], json.loads(row["lists"])[name], row["node_key"])
        for row in rows
        if row["lists"] and name in json.loads(row["lists"])
    ]
    return [key for *_, key in sorted(of_list)]


@pytest.mark.parametrize("name", ["suspects", "clear"])
def test_a_list_has_its_nodes_whatever_their_sets_hold(queries, rows, name):
    nodes = list(whole_worklist(queries, listed(queries, name)))
    assert [node.node_key for node in nodes] == expected(rows, name)
    of_key = {row["node_key"]: row for row in rows}
    for node in nodes:
        row = of_key[node.node_key]
        assert node.share == json.loads(row["lists"])[name]
        assert node.p == json.loads(row["p_values"])[MULE]
    assert count_worklist(queries, listed(queries, name), 10_000) == len(nodes) > 20
    if name == "clear":  # what the set holds does not decide: most of these don't hold the class
        assert len(nodes) > len(list(whole_worklist(queries, WorklistFilter("mule", run=1))))


def test_the_nodes_on_no_list_are_those_without_one(queries, rows):
    nodes = list(whole_worklist(queries, listed(queries, "open")))
    assert {node.node_key for node in nodes} == {r["node_key"] for r in rows if not r["lists"]}
    assert [node.seq for node in nodes] == sorted((node.seq for node in nodes), reverse=True)
    p = [node.p for node in nodes if node.seq == 3 and node.p > 0.1]
    assert p == sorted(p, reverse=True)
    assert {node.share for node in nodes} == {None}


def test_runs_that_decided_no_lists_have_no_open_nodes(queries):
    before = select(run.c.lists).where(run.c.project == "listed", run.c.seq == 1)
    lists = queries.scalar(before)
    with queries.store.transaction() as connection:
        first = update(run).where(run.c.project == "listed", run.c.seq == 1)
        connection.execute(first.values(lists=None))
    assert {node.seq for node in whole_worklist(queries, listed(queries, "open"))} == {2, 3}
    with queries.store.transaction() as connection:
        connection.execute(first.values(lists=lists))


def test_pages_and_neighbours_follow_the_order(queries):
    wanted = listed(queries, "clear")
    whole = [node.node_key for node in whole_worklist(queries, wanted)]
    paged, after = [], None
    while page := read_worklist(queries, replace(wanted, after=after), 7):
        paged += [node.node_key for node in page]
        after = page[-1].place
    assert paged == whole
    beside = [beside_on_list(queries, wanted, place_on_list(queries, wanted, k)) for k in whole]
    assert beside == list(zip([None, *whole], [*whole[1:], None], strict=False))[: len(whole)]
    suspects = listed(queries, "suspects")
    missing = next(node.node_key for node in whole_worklist(queries, listed(queries, "open")))
    assert place_on_list(queries, suspects, missing) is None


def test_other_filters_hold_on_a_list_too(queries, rows):
    unknown = {row["node_key"] for row in rows if row["label"] is None}
    nodes = list(whole_worklist(queries, listed(queries, "clear", known="no", run=2)))
    assert {node.node_key for node in nodes} == {
        row["node_key"]
        for row in rows
        if row["seq"] == 2 and row["node_key"] in unknown and row["lists"]
        and "clear" in json.loads(row["lists"])
    }  # fmt: skip
    few = listed(queries, "clear", key="account 2-1")
    assert {node.key[:11] for node in whole_worklist(queries, few)} == {"account 2-1"}


def test_keys_are_found_by_how_they_begin(queries):
    def keys(text):
        wanted = WorklistFilter("mule", known="any", key=text)
        return {node.key for node in whole_worklist(queries, wanted)}

    every = {n.key for n in whole_worklist(queries, WorklistFilter("mule", known="any"))}
    assert keys("account 1-") == {key for key in every if key.startswith("account 1-")} != set()
    assert keys("ACCOUNT") == keys("count") == keys("account %") == set()


def test_a_list_that_no_run_decided_is_refused(queries):
    with pytest.raises(ConfigError, match="no run decided a list 'x'"):
        listed(queries, "x")
    with pytest.raises(ConfigError, match="run 9 is none"):
        listed(queries, "clear", run=9)
    with pytest.raises(ConfigError, match="min_p"):
        listed(queries, "clear", min_p=0.5)
    with pytest.raises(ConfigError, match="which is about 'mule'"):
        choose_list(queries, WorklistFilter("retail", list_="clear"))


def test_a_name_used_for_another_class_is_another_list(queries):
    where = (run.c.project == "listed", run.c.seq == 1)
    lists = queries.scalar(select(run.c.lists).where(*where))
    changed = [terms | {"class_": "retail"} for terms in json.loads(lists)]
    with queries.store.transaction() as connection:
        connection.execute(update(run).where(*where).values(lists=json.dumps(changed)))
    assert {node.seq for node in whole_worklist(queries, listed(queries, "clear"))} == {2, 3}
    assert listed(queries, "clear", run=1).class_ == "retail"
    with queries.store.transaction() as connection:
        connection.execute(update(run).where(*where).values(lists=lists))
