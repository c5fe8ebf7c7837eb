"""`ringfence triage`, `project.lists()` and `project.triage()` on a made-up store."""

import csv
import io
import json
import re

import pytest
from typer.testing import CliRunner

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.cli.app import app
from ringfence.jobs.config.load import load
from ringfence.jobs.python_api.project import Project
from ringfence.jobs.samples.audit_store import Plan, fill_store

TOML = """
project = "p"
[graph]
label = "Account"
key = "id"
features = "f"
class_property = "kind"
"""
LISTS = """
[[lists]]
name = "investigate"
class = "mule"
may_be_wrong = 0.2
[[lists]]
name = "clear"
not = "mule"
may_be_wrong = 0.05
per = "stream"
"""


def fill(folder, toml):
    path = folder / "ringfence.toml"
    path.write_text(toml)
    settings = load(path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=3, per_run=120))
    store.close()
    return str(path)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("triage"), TOML + LISTS)


def ring(config, *arguments):
    return CliRunner().invoke(app, [*arguments, "--config", config])


def test_every_node_of_the_run_is_in_one_pile_and_the_csv_has_all(config):
    told = json.loads(ring(config, "triage", "--json").stdout)
    assert told["run"] == 3
    assert sum(told["piles"].values()) == len(told["nodes"]) == 120
    assert {node["pile"] for node in told["nodes"]} == {"investigate", "clear", "open"}
    whole = list(csv.DictReader(io.StringIO(ring(config, "triage", "--csv").stdout)))
    assert [row["node"] for row in whole] == [node["node"] for node in told["nodes"]]
    shares = [node["share"] for node in told["nodes"] if node["pile"] == "investigate"]
    assert shares == sorted(shares)
    assert max(shares) <= 0.2


def test_the_text_has_promises_piles_and_what_became_of_them(config):
    text = ring(config, "triage", "--limit", "2").stdout
    assert "investigate: " in text
    assert "are on no list" in text
    assert "of known class are not mule" in " ".join(text.split())


def test_the_audit_counts_each_list_over_all_runs_the_last_days_and_the_last_run(config):
    rows = json.loads(ring(config, "triage", "--json").stdout)["audit"]
    assert [(row["name"], row["slice"]) for row in rows] == [
        ("investigate", "total"), ("investigate", "window"), ("investigate", "run"),
        ("clear", "total"), ("clear", "window"), ("clear", "run"),
    ]  # fmt: skip
    for row in rows:
        assert row["false"] <= row["known"] <= row["listed"]
        assert row["low"] <= (row["pooled"] or 0) <= row["high"]


def test_python_has_the_same_rows(config):
    project = Project(load(config))
    piles = project.triage()
    assert len(piles) == 120
    assert piles.attrs["words"][0].startswith("list investigate")
    assert set(project.triage(run=1)["run"]) == {1}
    assert list(project.lists()["name"].unique()) == ["investigate", "clear"]


def test_without_lists_the_verb_says_what_to_do(tmp_path):
    config = fill(tmp_path, TOML)
    refused = ring(config, "triage")
    assert isinstance(refused.exception, ConfigError)
    assert "[[lists]]" in refused.exception.needed
    assert Project(load(config)).lists().empty


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        (LISTS.replace("0.2", "0"), "should be greater than 0"),
        (LISTS.replace("0.2", "1"), "should be less than 1"),
        (LISTS.replace('not = "mule"', 'class = "mule"'), "overlap: both hold nodes that are mule"),
        (LISTS.replace('"clear"', '"investigate"'), "two lists are called 'investigate'"),
        (LISTS.replace('not = "mule"\n', ""), "needs either class"),
        (LISTS.replace("per =", "every ="), "there is no setting [lists] 1.every"),
        (LISTS.replace('"stream"', '"week"'), "'run' or 'stream'"),
        (LISTS.replace('"clear"', '"to clear!"'), "should match pattern"),
    ],
)
def test_lists_that_can_not_be_are_refused_in_words(tmp_path, lists, words):
    path = tmp_path / "ringfence.toml"
    path.write_text(TOML + lists)
    with pytest.raises(ConfigError, match=re.escape(words)):
        load(path)
