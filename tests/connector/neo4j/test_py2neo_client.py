"""py2neo as an independent client: equal after a run, damage found, its own failures kept in."""

from datetime import UTC, datetime

import pytest

from ringfence.connector.errors import ConfigError, GraphError, ServerError
from ringfence.connector.neo4j.ogm import PossibleClass, Run, node_class
from ringfence.connector.neo4j.py2neo_client import connect_py2neo
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.integrity.py2neo_check import compare, open_py2neo
from ringfence.jobs.scoring.score import run_scoring
from tests.docs.page_blocks import blocks_of
from tests.stores import sqlite


def whats(workspace):
    return {difference.what for difference in compare(workspace)}


@sqlite
def test_after_runs_py2neo_sees_what_sql_decided(scored):
    workspace = scored.workspace
    scored.arrive(scored.later[0])
    run_scoring(workspace)
    assert compare(workspace) == []
    with open_py2neo(workspace.settings) as client:
        seen = client.runs("test")
        assert [seen[seq].evaluated for seq in (1, 2)] == [
            int((~scored.labelled[scored.first.nodes]).sum()),
            100,
        ]
        keys = [key for block in client.keys("test/2", rows=30) for key in block]
        assert len(keys) == len(set(keys)) == 100
        assert len(client.sets("test", keys)) == 100


@sqlite
def test_every_kind_of_damage_to_the_projection_is_found(scored):
    workspace = scored.workspace
    one = "MATCH (:Account)-[e:EVALUATED]->() WITH e ORDER BY e.key LIMIT 1 "
    another = "MATCH (:Account)-[e:EVALUATED]->() WITH e ORDER BY e.key DESC LIMIT 1 "
    may_be = "MATCH (:Account)-[m:MAY_BE]->() WITH m LIMIT 1 "
    damages = [
        (may_be + "SET m.p = m.p + 1e-15", "p"),
        (may_be + "SET m.in_set = false", "in_set"),
        (may_be + "DELETE m", "p"),
        (one + "SET e.size = 99", "size"),
        (one + "SET e.level = 0.3", "level"),
        (one + "SET e.band = 'x'", "band"),
        (one + "SET e.alpha = 0.2", "alpha"),
        (another + "DELETE e", "set is missing in the graph"),
        ("MATCH (r:RingfenceRun) SET r.threshold = r.threshold + 1e-15", "threshold"),
        ("CREATE (:RingfenceRun {id: 'test/7', project: 'test', seq: 7})", "run is not in SQL"),
        (
            "MATCH (r:RingfenceRun {id: 'test/1'}) "
            "CREATE (:Account {id: -1})-[:EVALUATED {key: 'test/i:-1'}]->(r)",
            "set is not in SQL",
        ),
    ]
    expected = set()
    assert whats(workspace) == expected
    for cypher, what in damages:
        workspace.graph.run(cypher)
        expected.add(what)
        assert whats(workspace) == expected, cypher
    workspace.graph.run("MATCH (r:RingfenceRun {id: 'test/1'}) DETACH DELETE r")
    assert "run is missing in the graph" in whats(workspace)


@sqlite
def test_a_difference_names_run_node_and_both_values(scored):
    workspace = scored.workspace
    workspace.graph.run(
        "MATCH (n:Account)-[e:EVALUATED]->() WITH e ORDER BY e.key LIMIT 1 SET e.size = 99"
    )
    (found,) = compare(workspace)
    assert (found.seq, found.what, found.in_graph) == (1, "size", 99)
    assert found.node_key.startswith("i:")
    assert 0 <= found.in_sql < 99


@sqlite
def test_notebooks_get_runs_and_sets_as_objects(scored, neo4j_server, capsys):
    workspace = scored.workspace
    run_audit(workspace)
    with open_py2neo(workspace.settings) as client:
        (run,) = Run.match(client.graph)
        assert (run.project, run.seq, run.alpha) == ("test", 1, 0.1)
        assert {audit.slice for audit in run.audits} == {"run", "total"}
        assert PossibleClass.match(client.graph).count() == len(scored.sample.classes)
        (row,) = workspace.graph.read(
            "MATCH (n:Account)-[m:MAY_BE]->(c) WITH n.id AS id, collect([c.name, m.p]) AS set "
            "ORDER BY id LIMIT 1 RETURN id, set"
        )
        account = node_class("Account", "id").match(client.graph, row["id"]).first()
        assert account.set == dict(row["set"])
        assert account.run.seq == 1
    space = {"workspace": workspace, "password": neo4j_server.password}
    for block in blocks_of("second-client.md", "python"):  # the page's examples, as they stand
        told = block.text.replace("bolt://localhost:7687", neo4j_server.uri)
        exec(compile(told.replace(", 42)", f", {row['id']!r})"), block.page, "exec"), space)
    assert str(account.set) in capsys.readouterr().out


def test_a_wrong_password_and_an_absent_server_are_told_in_our_own_words(neo4j_server):
    with (
        pytest.raises(ServerError, match="refused the user or the password"),
        connect_py2neo(neo4j_server.uri, neo4j_server.user, "wrong"),
    ):
        pass
    with (
        pytest.raises(ServerError, match="no Neo4j server answers"),
        connect_py2neo("bolt://127.0.0.1:1", "neo4j", "any"),
    ):
        pass
    with (
        pytest.raises(ConfigError, match="plain text"),
        connect_py2neo("bolt://db.example.com", "neo4j", "any"),
    ):
        pass


def test_what_py2neo_cannot_do_is_refused_before_it_fails(graph):
    with connect_py2neo(graph.uri, *graph.auth) as client:
        with pytest.raises(GraphError, match="time zone"):
            client.read("RETURN $x AS x", x=[{"deep": datetime.now(UTC)}])
        with pytest.raises(GraphError, match="SHOW INDEXES"):
            client.graph.schema.get_indexes("Account")
        with pytest.raises(GraphError, match="refused a statement"):
            client.read("CREATE (n:Account) RETURN n")
        assert client.read("SHOW INDEXES YIELD name RETURN count(*) AS n")[0]["n"] >= 0
        assert client.read("RETURN $x AS x", x=1) == [{"x": 1}]
    assert graph.run("MATCH (n) RETURN count(n) AS n") == [{"n": 0}]


@pytest.mark.parametrize("name", ["", "a`b", "a\\u0060b"])
def test_a_label_that_py2neo_would_misread_is_refused(name):
    with pytest.raises(ConfigError):
        node_class(name, "id")
