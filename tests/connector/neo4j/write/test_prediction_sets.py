"""Blocks of sets in the graph: written once, however often, from whatever stands there already."""

import threading
from types import SimpleNamespace

import pytest
from neo4j.exceptions import Neo4jError

from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import map_one_label
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.migrate import create_user_indexes, migrate_graph
from ringfence.connector.neo4j.write import prediction_sets
from ringfence.connector.store.lease import Lease
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.scoring.score import run_scoring
from tests.patience import PATIENCE_SECONDS

MAPPING = map_one_label("Any", "id", "f", "kind", "at", "zoned", ())
CLASSES = ["a`b", "'} DETACH DELETE n //", "$names", "\\u0060"]
NODES = 12
SHOWN = """
MATCH (n:Any)
RETURN n.id AS id,
  [(n)-[e:EVALUATED]->(r) |
    [r.id, e.key, e.size, e.alpha, e.level, e.band, elementId(e)]] AS evaluated,
  [(n)-[m:MAY_BE]->(c) | [c.project, c.name, m.p, m.in_set, elementId(m)]] AS may_be
"""


class Projected:
    """Twelve nodes, and the sets of one run of a project: sizes 0 to 4 in turns."""

    def __init__(self, graph):
        self.graph = graph
        graph.run("UNWIND range(0, $n - 1) AS i CREATE (:Any {id: i})", n=NODES)
        self.begin("one")

    def begin(self, project):
        self.held = Lease(project, "test", 1, 60.0)
        self.run = SimpleNamespace(
            project=project, seq=1, decided_ns=0, rule="NodeEx", alpha=0.1, threshold=None,
            n_calibration=1, model="m", level=0.1, promise="marginal", lowest_level=None,
        )  # fmt: skip
        prediction_sets.write_run(self.graph, self.held, self.run, CLASSES)

    def sets(self, nodes, shift=0.0):
        return [
            SimpleNamespace(
                project=self.run.project, node_key=f"i:{i}", size=i % 5,
                classes=tuple(CLASSES[: i % 5]), band="2-4", created_ns=None, sampled=False,
                lists={}, p_values=tuple(i / 100 + place / 10 + shift for place in range(4)),
            )
            for i in nodes
        ]  # fmt: skip

    def write(self, nodes, **other):
        prepared = prediction_sets.prepare_sets(self.sets(nodes, **other), CLASSES)
        return prediction_sets.write_sets(self.graph, self.held, MAPPING, self.run, prepared)

    def shown(self):
        """Per node what stands, with the relationships' own ids: one made anew is another one."""
        return {
            row["id"]: (sorted(row["evaluated"]), sorted(row["may_be"]))
            for row in self.graph.read(SHOWN)
        }

    def wanted(self, i):
        """What a node must show, without ids."""
        project, p_values = self.run.project, self.sets([i])[0].p_values
        evaluated = [[f"{project}/1", f"{project}/i:{i}", i % 5, 0.1, 0.1, "2-4"]]
        pairs = zip(CLASSES, p_values, strict=True)
        return evaluated, sorted([project, name, p, True] for name, p in list(pairs)[: i % 5])


@pytest.fixture
def projected(graph):
    ours = connect(graph.uri, *graph.auth)
    migrate_graph(ours)
    create_user_indexes(ours, MAPPING)
    yield Projected(ours)
    ours.close()


def plain(shown):
    return tuple([row[:-1] for row in part] for part in shown)


def check(projected, nodes=range(NODES)):
    shown = projected.shown()
    assert {i: plain(shown[i]) for i in nodes} == {i: projected.wanted(i) for i in nodes}


def test_sets_of_all_sizes_and_names_stand_as_they_were_decided(projected):
    assert projected.write(range(NODES)) == []
    check(projected)
    assert projected.graph.read("MATCH (c:RingfenceClass) RETURN count(c) AS n")[0]["n"] == 4


def test_a_replay_creates_nothing_and_changes_nothing(projected, monkeypatch):
    projected.write(range(NODES))
    before = projected.shown()
    assert projected.write(range(NODES)) == []
    assert projected.write(range(NODES), shift=0.01) == []  # other numbers: what stands stays
    assert projected.shown() == before
    # control: without asking what stands, sets are doubled
    asked = "[classes[row[3][i]]] WHERE NOT to IN there"
    blind = prediction_sets.SETS.replace(asked, "[classes[0]]")
    monkeypatch.setattr(prediction_sets, "SETS", blind)
    projected.write(range(NODES))
    assert projected.shown() != before


def test_a_block_half_of_which_stands_is_completed(projected):
    projected.write(range(0, NODES, 2))
    before = projected.shown()
    assert projected.write(range(NODES)) == []
    check(projected)
    after = projected.shown()
    assert all(after[i] == before[i] for i in range(0, NODES, 2))


@pytest.mark.parametrize(
    "wound",
    [
        "MATCH (:Any {id: 4})-[e:EVALUATED]->() DELETE e",
        "MATCH (:Any {id: 4})-[m:MAY_BE]->(c {name: '$names'}) DELETE m",
        "MATCH (:Any {id: 4})-[m:MAY_BE]->() DELETE m",
        "MATCH (:Any {id: 4})-[r:MAY_BE|EVALUATED]->() DELETE r",
    ],
)
def test_what_is_missing_of_a_set_is_added_and_the_rest_is_left(projected, wound):
    projected.write(range(NODES))
    before = projected.shown()
    projected.graph.run(wound)
    wounded = projected.shown()
    assert wounded[4] != before[4]
    assert projected.write(range(NODES)) == []
    check(projected)
    after = projected.shown()
    assert all(after[i] == before[i] for i in range(NODES) if i != 4)
    for stood, stands in zip(wounded[4], after[4], strict=True):
        assert [row for row in stood if row not in stands] == []


def test_a_node_deleted_meanwhile_is_named_and_the_others_are_written(projected):
    projected.graph.run("MATCH (n:Any) WHERE n.id IN [3, 9] DETACH DELETE n")
    assert projected.write(range(NODES)) == ["i:3", "i:9"]
    check(projected, [i for i in range(NODES) if i not in (3, 9)])


def test_a_class_node_deleted_meanwhile_comes_back_and_no_set_points_beside(projected):
    projected.graph.run("MATCH (c:RingfenceClass {name: $name}) DELETE c", name=CLASSES[1])
    assert projected.write(range(NODES)) == []
    check(projected)


def test_two_projects_on_one_graph_do_not_touch_each_other(projected):
    projected.write(range(NODES))
    first = projected.shown()
    projected.begin("two")
    assert projected.write(range(NODES), shift=0.5) == []
    both = projected.shown()
    for i in range(NODES):
        evaluated, may_be = both[i]
        assert [row for row in evaluated if row[0] == "one/1"] == first[i][0]
        assert [row for row in may_be if row[0] == "one"] == first[i][1]
        assert [row[2] for row in may_be if row[0] == "two"] == pytest.approx(
            [p + 0.5 for _, _, p, _ in projected.wanted(i)[1]]
        )
        assert len(evaluated) == 2


def test_an_evaluation_forged_on_another_node_stops_the_block_as_a_whole(projected):
    forged = "MATCH (n:Any {id: 5}), (r:RingfenceRun) CREATE (n)-[:EVALUATED {key: 'one/i:7'}]->(r)"
    projected.graph.run(forged)
    before = projected.shown()
    with pytest.raises((GraphError, Neo4jError), match="ConstraintValidation"):
        projected.write(range(NODES))
    assert projected.shown() == before


def test_an_evaluation_with_another_key_does_not_stand_for_the_nodes_own(projected):
    forged = "MATCH (n:Any {id: 5}), (r:RingfenceRun) CREATE (n)-[:EVALUATED {key: 'mine'}]->(r)"
    projected.graph.run(forged)
    assert projected.write(range(NODES)) == []
    keys = {row[1] for row in projected.shown()[5][0]}
    assert keys == {"mine", "one/i:5"}


def test_the_next_block_is_made_while_one_is_written(trained, monkeypatch):
    settings = trained.workspace.settings
    small = settings.engine.model_copy(update={"write_rows": 40})
    made, prepare, write = [], prediction_sets.prepare_sets, prediction_sets.write_sets
    second = threading.Event()
    waited = []

    def preparing(block, classes, lowest_level):
        made.append(len(block))
        if len(made) == 2:
            second.set()
        return prepare(block, classes, lowest_level)

    def writing(*given):
        waited.append(second.wait(PATIENCE_SECONDS))  # the first goes on once the second is made
        assert len(made) <= len(waited) + 1  # and no more than one block lies ready
        return write(*given)

    monkeypatch.setattr(prediction_sets, "prepare_sets", preparing)
    monkeypatch.setattr(prediction_sets, "write_sets", writing)
    with open_workspace(settings.model_copy(update={"engine": small})) as workspace:
        report = run_scoring(workspace)
    assert waited[0]
    assert sum(made) == report.evaluated
    assert len(made) == len(waited) > 2
