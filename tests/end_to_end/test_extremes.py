"""Shapes and clocks that nobody plans for: hubs, hundreds of classes, clocks that move back.

The sizes are small forms; RINGFENCE_TEST_HUB=100000 makes the hub as large as it was tried with.
"""

import os
from collections.abc import Iterator

import numpy as np
import pytest

from ringfence.connector.store import coverage
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from ringfence.jobs.views.explain import run_explain
from tests.stores import sqlite

CLASSES, WIDTH = 300, 4
HUB = int(os.environ.get("RINGFENCE_TEST_HUB", "2000"))

ADD = """
UNWIND $nodes AS node
CREATE (n:Account {id: node[0], features: node[1], created_at: coalesce(node[3],
  datetime.realtime())})
SET n.kind = node[2]
"""
LINK = """
UNWIND $ids AS id MATCH (a:Account {id: id}), (b:Account {id: $to})
CREATE (a)-[:PAID {created_at: datetime.realtime()}]->(b)
"""


def nodes(first, count, kind=lambda _number: None, created=None):
    chance = np.random.default_rng(first)
    return [
        [number, chance.normal(size=WIDTH).tolist(), kind(number), created]
        for number in range(first, first + count)
    ]


@pytest.fixture
def small(workspace) -> Iterator[Workspace]:
    """A trained project with 60 nodes of known class in a row."""
    graph = workspace.graph
    graph.run(ADD, nodes=nodes(0, 60, lambda number: "ab"[number % 2]))
    for number in range(59):
        graph.run(LINK, ids=[number], to=number + 1)
    run_training(workspace)
    return workspace


@sqlite
@pytest.mark.slow
def test_a_node_with_very_many_relationships(small):
    graph = small.graph
    graph.run(ADD, nodes=nodes(1_000, HUB))
    for start in range(1_000, 1_000 + HUB, 10_000):
        graph.run(LINK, ids=list(range(start, min(start + 10_000, 1_000 + HUB))), to=0)
    first = run_scoring(small)
    assert (first.evaluated, first.run.n_relationships) == (HUB, 59 + HUB)
    graph.run("MATCH (:Account {id: 1000})-[r:PAID]->() DELETE r")
    graph.run(ADD, nodes=nodes(500_000, 1))
    graph.run(LINK, ids=[500_000], to=0)
    second = run_scoring(small)
    assert (second.evaluated, second.run.n_relationships) == (1, 59 + HUB)
    run_audit(small)
    assert run_verification(small).problems == ()
    assert len(run_explain(small, "500000").neighbours) == 1


@pytest.mark.long
@sqlite
@pytest.mark.slow
def test_three_hundred_classes(settings):
    with open_workspace(settings) as workspace:
        run_migrations(workspace)
        graph = workspace.graph
        known = nodes(0, 5 * CLASSES, lambda number: f"class {number % CLASSES}")
        graph.run(ADD, nodes=known)
        graph.run(ADD, nodes=nodes(10_000, 20))
        assert len(run_training(workspace).classes) == CLASSES
        done = run_scoring(workspace)
        assert done.evaluated == 20
        graph.run("MATCH (n:Account) WHERE n.id >= 10000 SET n.kind = 'class 7'")
        audited = run_audit(workspace)
        assert audited.newly_known == 20
        stored = coverage.stored(workspace.store, workspace.project)
        assert {row.name for row in stored if row.slice == "class"} == {"class 7"}
        assert run_verification(workspace).problems == ()


@sqlite
def test_clocks_that_moved_back_or_ahead_lose_nothing(small):
    """Nodes are stamped long before the watermark (a clock moved back), or after it."""
    graph, now = small.graph, "RETURN datetime.realtime() + duration($by) AS t"
    run_scoring(small)
    evaluated = 0
    for turn, by in enumerate(("-PT1H", "-PT1H", "P2D", "-PT30M", "PT0S", "P1D")):
        created = graph.read(now, by=by)[0]["t"]
        first = 2_000 + 10 * turn
        graph.run(ADD, nodes=nodes(first, 3, created=created))
        graph.run(
            "MATCH (a:Account {id: $a}), (b:Account {id: 5}) "
            "CREATE (a)-[:PAID {created_at: $created}]->(b)",
            a=first,
            created=created,
        )
        done = run_scoring(small)
        evaluated += done.evaluated
        assert (done.evaluated, done.run.n_relationships) == (3, 60 + turn), by
    assert run_scoring(small).evaluated == 0
    assert run_verification(small).problems == ()
