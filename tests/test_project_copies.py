"""A copied project goes on as a fresh one does, and a copied graph holds what it held."""

import pytest
from sqlalchemy import select

from ringfence.connector.store import tables
from ringfence.connector.store.chain import read_entries
from ringfence.jobs.integrity.reconcile import run_reconcile
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from tests.forms import typed_as_well
from tests.graph_copy import empty_graph, read_graph, write_graph
from tests.project_copies import STAGES, clear_project, sample_parts
from tests.stores import sqlite

EVERY_TYPE = """
CREATE CONSTRAINT kept FOR (n:A) REQUIRE n.id IS UNIQUE;
CREATE INDEX found FOR ()-[r:TO]-() ON (r.at);
CREATE (a:A:`B c` {id: 1, text: 'ü', yes: true, no: false, whole: 9007199254740993, part: 0.1,
  zoned: datetime('2026-01-02T03:04:05.123456789[Europe/Berlin]'),
  offset: datetime('2026-01-02T03:04:05.000000001+03:30'),
  local: localdatetime('2026-01-02T03:04:05.123456789'), day: date('2026-01-02'),
  at: time('03:04:05+01:00'), clock: localtime('03:04'), long: duration('P1M2DT3.5S'),
  place: point({x: 1.5, y: 2, z: 3}), list: [1, 2], floats: [0.1, -0.0], texts: ['a', ''],
  days: [date('2026-01-02')], nothing: []}),
  (b:A {id: 2}), (), (a)-[:TO {at: datetime()}]->(b), (a)-[:TO {at: datetime()}]->(b),
  (b)-[:`to self`]->(b)
"""


def run_statements(graph, statements):
    for statement in statements.split(";\n"):
        graph.run(statement)


def content(graph):
    """Schema, nodes and relationships in an order of their own, without element ids."""
    copy = read_graph(graph)
    labels = {node["id"]: (sorted(node["labels"]), repr(node["properties"])) for node in copy.nodes}
    relationships = [
        (labels[row["source"]], row["type"], labels[row["target"]], repr(row["properties"]))
        for row in copy.relationships
    ]
    return copy.schema, sorted(labels.values()), sorted(relationships)


def test_a_copied_graph_holds_every_type_of_property_and_the_schema(graph):
    run_statements(graph, EVERY_TYPE)
    before, copy = content(graph), read_graph(graph)
    assert [len(part) for part in before[1:]] == [3, 3]
    assert [len(copy.schema.constraints), len(copy.schema.indexes)] == [1, 1]
    for change in (empty_graph, lambda graph: graph.run("MATCH (n) DETACH DELETE n")):
        change(graph)
        assert content(graph) != before
        write_graph(graph, copy)
        assert content(graph) == before
    graph.run("MATCH (n:A {id: 1}) SET n.zoned = n.zoned + duration({nanoseconds: 1})")
    assert content(graph) != before


def test_a_constraint_of_the_same_name_on_something_else_is_replaced(graph):
    run_statements(graph, EVERY_TYPE)
    copy = read_graph(graph)
    empty_graph(graph)
    graph.run("CREATE CONSTRAINT kept FOR (n:A) REQUIRE n.text IS UNIQUE")
    graph.run("CREATE INDEX other FOR (n:A) ON (n.day)")
    write_graph(graph, copy)
    assert read_graph(graph).schema == copy.schema


def go_on(settings, sample):
    """Score what is there and a batch that arrives; return what was decided, and all entries."""
    with open_workspace(settings) as workspace:
        grown = sample_parts(workspace, sample)
        runs = [run_scoring(workspace)]
        grown.arrive(grown.later[0])
        runs.append(run_scoring(workspace))
        assert run_verification(workspace).problems == ()
        assert run_reconcile(workspace, repair=False).clean
        with workspace.store.reading() as connection:
            predictions = connection.execute(select(tables.prediction)).mappings()
            sets = sorted(
                (row["node_key"], row["seq"], row["classes"], row["p_values"], row["scores"])
                for row in predictions
            )
            kinds = [entry.kind for entry in read_entries(connection, workspace.project)]
    facts = [
        (run.evaluated, run.new_nodes, run.new_edges, run.run and run.run.threshold) for run in runs
    ]
    return sets, kinds, facts


@typed_as_well
def test_a_copied_project_decides_what_a_freshly_trained_one_does(
    settings, graph, sample, project_copies
):
    clear_project(settings, graph)
    with open_workspace(settings) as workspace:
        STAGES["migrated"].work(workspace, sample)
        STAGES["trained"].work(workspace, sample)
    fresh = go_on(settings, sample)
    assert len(fresh[0]) > 200
    for _ in range(2):  # the second copy is not the place where the original was made
        project_copies.restore(STAGES["trained"], settings, graph)
        assert go_on(settings, sample) == fresh
    project_copies.restore(STAGES["scored"], settings, graph)
    sets, _, facts = go_on(settings, sample)
    assert facts[0][0] == 0
    assert (sets, facts[1]) == (fresh[0], fresh[2][1])


def lose_the_mirror(settings, graph):
    with open_workspace(settings) as workspace:
        (workspace.mirror / "mirror.json").unlink()


def lose_relationships(settings, graph):
    graph.run("MATCH ()-[r:PAID]->() WITH r ORDER BY r.created_at LIMIT 300 DELETE r")


def lose_classes(settings, graph):
    graph.run("MATCH (n:Account) WHERE n.kind IS NOT NULL AND n.id % 2 = 0 REMOVE n.kind")


@sqlite
@pytest.mark.parametrize("damage", [lose_the_mirror, lose_relationships, lose_classes])
def test_an_incomplete_copy_would_be_noticed(damage, settings, graph, sample, project_copies):
    project_copies.restore(STAGES["trained"], settings, graph)
    whole = go_on(settings, sample)
    project_copies.restore(STAGES["trained"], settings, graph)
    damage(settings, graph)
    assert go_on(settings, sample) != whole
