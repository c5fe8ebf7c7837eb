"""`ringfence mark … --outcome` and `ringfence outcomes` on a made-up store, without a graph."""

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.cli.app import app
from ringfence.jobs.config.load import load
from ringfence.jobs.python_api.project import Project
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.jobs.cli.test_triage import LISTS, TOML


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "ringfence.toml"
    path.write_text(TOML + LISTS)
    settings = load(path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=3, per_run=120))
    store.close()
    return str(path)


def ring(config, *arguments):
    return CliRunner().invoke(app, [*arguments, "--config", config])


def listed(config):
    """Keys of nodes to investigate."""
    nodes = json.loads(ring(config, "triage", "--json").stdout)["nodes"]
    return [node["node"] for node in nodes if node["pile"] == "investigate"]


def test_an_outcome_is_about_the_class_of_the_list(config):
    first, second, third = listed(config)[:3]
    made = ring(config, "mark", first, "done", "--who", "anna", "--outcome", "confirmed", "--json")
    assert json.loads(made.stdout)["about"] == "mule"
    said = ring(config, "mark", second, "done", "--who", "anna", "--outcome", "false-alarm",
                "--note", "=HYPERLINK()").stdout  # fmt: skip
    assert "anna: done (false alarm as mule) of node" in said
    ring(config, "mark", third, "claim", "--who", "anna", "--assign-to", "ben")
    rows = json.loads(ring(config, "outcomes", "--json").stdout)
    assert [(row["node"], row["outcome"]) for row in rows] == [
        (first, "confirmed"), (second, "false alarm"),
    ]  # fmt: skip
    assert {row["lists"] for row in rows} == {"investigate"}
    whole = list(csv.DictReader(io.StringIO(ring(config, "outcomes", "--csv").stdout)))
    assert [row["outcome"] for row in whole] == ["confirmed", "false alarm"]
    assert whole[1]["note"] == "'=HYPERLINK()"
    assert "2 nodes are done" in ring(config, "outcomes").stdout
    his = ring(config, "worklist", "mule", "--by", "ben", "--known", "any", "--json").stdout
    assert {row["node"] for row in json.loads(his)} <= {third}


def test_cypher_follows_the_users_rules(config):
    first, second, third = listed(config)[:3]
    project = Project(load(config))
    for key, outcome in (
        (first, "confirmed"), (second, "false alarm"), (third, "undecided"),
    ):  # fmt: skip
        project.mark(key, "done", who="anna", outcome=outcome)
    plain = ring(config, "outcomes", "--cypher").stdout
    assert f"{{key: '{first}', class: 'mule'}}" in plain
    assert f"'{second}'" not in plain
    assert f"'{third}'" not in plain
    assert "WHERE n.`kind` IS NULL" in plain
    rules = ("--rule", "false-alarm=retail", "--rule", "confirmed=", "--property", "kind two")
    ruled = ring(config, "outcomes", "--cypher", *rules).stdout
    assert f"{{key: '{second}', class: 'retail'}}" in ruled
    assert f"'{first}'" not in ruled
    assert "SET n.`kind two` = row.class" in ruled
    assert list(project.outcomes()["outcome"]) == ["confirmed", "false alarm", "undecided"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cypher", "--rule", "guilty=mule"], "the rule 'guilty=mule'"),
        (["--cypher", "--rule", "confirmed"], "the rule 'confirmed'"),
        (["--cypher", "--rule", "confirmed=nobody"], "knows the class 'nobody'"),
        (["--rule", "confirmed=mule"], "without --cypher"),
        (["--cypher", "--csv"], "several forms at once"),
    ],
)
def test_what_can_not_be_exported_is_refused(config, arguments, words):
    refused = ring(config, "outcomes", *arguments)
    assert isinstance(refused.exception, ConfigError)
    assert words in refused.exception.found


def test_without_outcomes_the_verb_says_what_to_type(config):
    assert "ringfence mark KEY done --outcome" in ring(config, "outcomes").stdout
    assert ring(config, "outcomes", "--cypher").stdout == ""
    assert Project(load(config)).outcomes().empty
