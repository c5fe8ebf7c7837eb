"""Any Neo4j in one command: a server whose database has another name, from NEO4J_* alone."""

import json
import tomllib

import pytest

from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import connect
from ringfence.connector.neo4j.embedded import launch

pytestmark = pytest.mark.neo4j


def server_table(folder):
    return tomllib.loads((folder / "ringfence.toml").read_text(encoding="utf-8"))["neo4j"]


def test_init_writes_the_address_that_it_inspected(ringfence, graph, project, tmp_path_factory):
    folder, env = project
    ringfence("sample", "--nodes", "300", cwd=folder, env=env)
    inspected = {"uri": graph.uri, "user": graph.auth[0], "database": "neo4j"}
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    ringfence("init", cwd=ours, env=env | {"RINGFENCE_NEO4J_URI": graph.uri})
    assert server_table(ours) == inspected
    variables = {
        "NEO4J_URI": graph.uri,
        "NEO4J_USERNAME": graph.auth[0],
        "NEO4J_PASSWORD": graph.auth[1],
    }
    ringfence("init", cwd=theirs, env=variables)
    assert server_table(theirs) == inspected
    # the password of that server still counts for it, and for no other
    ringfence("migrate", cwd=theirs, env=variables)
    other = variables | {"NEO4J_URI": "bolt://localhost:1"}
    refused = ringfence("migrate", cwd=theirs, env=other, code=1)
    assert "no password for" in refused.stderr


def test_init_takes_auras_file_and_names_it(ringfence, graph, project, tmp_path_factory):
    folder, env = project
    ringfence("sample", "--nodes", "300", cwd=folder, env=env)
    here = tmp_path_factory.mktemp("aura")
    (here / "aura.txt").write_text(
        f"NEO4J_URI={graph.uri}\nNEO4J_USERNAME={graph.auth[0]}\nNEO4J_PASSWORD={graph.auth[1]}\n"
        "NEO4J_DATABASE=neo4j\nAURA_INSTANCEID=1a2b\n"
    )
    ringfence("init", "--credentials", "aura.txt", cwd=here)
    assert server_table(here) == {
        "uri": graph.uri, "user": graph.auth[0], "database": "neo4j", "credentials": "aura.txt",
    }  # fmt: skip
    assert graph.auth[1] not in (here / "ringfence.toml").read_text()
    ringfence("migrate", cwd=here)
    wrong = ringfence("init", "--database", "shop", "--force", "--credentials", "aura.txt",
                      cwd=here, code=1)  # fmt: skip
    assert "has no database 'shop'; databases that the user may see there: neo4j" in wrong.stderr


def test_doctor_names_the_database_and_refuses_another(ringfence, graph, project):
    folder, env = project
    ringfence("sample", "--nodes", "300", cwd=folder, env=env)
    ringfence("migrate", cwd=folder, env=env)
    healthy = json.loads(ringfence("doctor", "--json", cwd=folder, env=env).stdout)
    assert f"Neo4j answers at {graph.uri}, database neo4j" in [row["text"] for row in healthy]
    elsewhere = env | {"RINGFENCE_NEO4J_DATABASE": "x"}
    lost = json.loads(ringfence("doctor", "--json", cwd=folder, env=elsewhere, code=1).stdout)
    errors = [row["text"] for row in lost if row["level"] == "error"]
    assert [text.partition(";")[0] for text in errors] == [f"{graph.uri} has no database 'x'"]


def test_a_project_without_any_file_scores_from_its_environment(ringfence, project, tmp_path):
    folder, env = project
    values = tomllib.loads((folder / "ringfence.toml").read_text())
    (folder / "ringfence.toml").unlink()
    graph = values["graph"]
    lists = {"RINGFENCE_GRAPH_RELATIONSHIPS": json.dumps(graph.pop("relationships"))}
    env = env | lists | {f"RINGFENCE_GRAPH_{name.upper()}": text for name, text in graph.items()}
    env |= {"RINGFENCE_NEO4J_URI": values["neo4j"]["uri"], "RINGFENCE_MODEL_MAX_EPOCHS": "5"}
    (tmp_path / "password").write_text(env.pop("RINGFENCE_NEO4J_PASSWORD") + "\n")
    env["RINGFENCE_NEO4J_PASSWORD_FILE"] = str(tmp_path / "password")
    for verb in (("sample", "--nodes", "300"), ("migrate",), ("status",)):
        ringfence(*verb, cwd=folder, env=env)
    assert (folder / ".ringfence" / "audit.db").exists()


@pytest.mark.slow
@pytest.mark.long
def test_a_database_of_another_name_works_from_neo4j_variables_alone(
    ringfence, tmp_path, monkeypatch
):
    """As Aura has it: the only database is named after the instance, and is the home one."""
    usual = launch.configuration
    monkeypatch.setattr(
        launch,
        "configuration",
        lambda *given: usual(*given) + "initial.dbms.default_database=a1b2c3\n",
    )
    with embedded.running(tmp_path / "server") as server:
        opened = connect(server.uri, server.user, server.password, database="")
        assert opened.database == "a1b2c3"
        opened.close()
        variables = {
            "NEO4J_URI": server.uri,
            "NEO4J_USERNAME": server.user,
            "NEO4J_PASSWORD": server.password,
        }
        folder = tmp_path / "project"
        folder.mkdir()
        fill = {
            "RINGFENCE_NEO4J_URI": server.uri,
            "RINGFENCE_NEO4J_PASSWORD": server.password,
            "RINGFENCE_NEO4J_DATABASE": "a1b2c3",
            "RINGFENCE_GRAPH_LABEL": "Account",
            "RINGFENCE_GRAPH_KEY": "id",
            "RINGFENCE_GRAPH_FEATURES": "features",
            "RINGFENCE_GRAPH_CLASS_PROPERTY": "kind",
        }
        ringfence("sample", "--nodes", "600", cwd=folder, env=fill)
        for verb in ("init", "migrate", "doctor", "train", "score"):
            ringfence(verb, cwd=folder, env=variables)
        assert server_table(folder)["database"] == "a1b2c3"
        moved = variables | {"RINGFENCE_NEO4J_DATABASE": "neo4j"}
        refused = ringfence("score", cwd=folder, env=moved, code=1)
        assert "databases that the user may see there: a1b2c3" in refused.stderr
