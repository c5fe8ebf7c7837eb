"""`ringfence worklist` and `ringfence mark` on a made-up store, without a graph."""

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.cli.app import app
from ringfence.jobs.config.load import load
from ringfence.jobs.python_api.project import open_project
from ringfence.jobs.samples.audit_store import Plan, fill_store

TOML = """
project = "p"
[graph]
label = "Account"
key = "id"
features = "f"
class_property = "kind"
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("worklist") / "ringfence.toml"
    path.write_text(TOML)
    settings = load(path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=2, per_run=120))
    store.close()
    return str(path)


def ring(config, *arguments):
    return CliRunner().invoke(app, [*arguments, "--config", config])


def test_the_list_is_sorted_and_the_csv_has_all_of_it(config):
    rows = json.loads(ring(config, "worklist", "mule", "--json").stdout)
    p = [row["p"] for row in rows]
    assert p == sorted(p, reverse=True)
    whole = list(csv.DictReader(io.StringIO(ring(config, "worklist", "mule", "--csv").stdout)))
    assert [float(row["p"]) for row in whole[:20]] == p
    assert len(whole) > 20
    text = ring(config, "worklist", "mule").stdout
    assert rows[0]["node"] in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    path = tmp_path_factory.mktemp("listed") / "ringfence.toml"
    path.write_text(TOML + '[[lists]]\nname = "clear"\nnot = "mule"\nmay_be_wrong = 0.05\n')
    settings = load(path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=2, per_run=120))
    store.close()
    return str(path)


def test_a_list_is_printed_with_its_promise_and_needs_no_class(listed):
    text = " ".join(ring(listed, "worklist", "--list", "clear", "--known", "any").stdout.split())
    assert "at most 5 % of its nodes are mule" in text
    assert "promised on that average" in text
    rows = json.loads(
        ring(listed, "worklist", "--list", "clear", "--known", "any", "--json").stdout
    )
    piles = json.loads(ring(listed, "triage", "--json").stdout)
    of_run = [row["node"] for row in rows if row["run"] == 2]
    cleared = [node["node"] for node in piles["nodes"] if node["pile"] == "clear"]
    assert of_run == cleared[:20]
    assert {row["class"] for row in rows} == {"mule"}
    frame = open_project(listed).worklist(list="clear", known="any", run=2)
    assert frame["key"].tolist() == cleared
    assert any("at most 5 %" in words for words in frame.attrs["words"])
    wrong = ring(listed, "worklist", "--list", "nobody")
    assert isinstance(wrong.exception, ConfigError)
    assert "clear, open" in wrong.exception.needed


def test_keys_are_searched_by_how_they_begin(config):
    rows = json.loads(ring(config, "worklist", "mule", "--key", "account 2-1", "--json").stdout)
    assert rows
    assert all(row["node"].startswith("account 2-1") for row in rows)


def test_without_a_class_the_classes_are_named(config):
    assert "retail, business, mule, exchange" in ring(config, "worklist").stdout
    wrong = ring(config, "worklist", "nobody")
    assert isinstance(wrong.exception, ConfigError)
    assert "retail" in wrong.exception.needed


def test_a_mark_moves_a_node_out_of_the_list(config):
    first = json.loads(ring(config, "worklist", "mule", "--json").stdout)[0]["node"]
    made = json.loads(ring(config, "mark", first, "done", "--who", "anna", "--json").stdout)
    assert (made["who"], made["action"]) == ("anna", "done")
    now = json.loads(ring(config, "worklist", "mule", "--json").stdout)
    assert first not in [row["node"] for row in now]
    done = json.loads(ring(config, "worklist", "mule", "--state", "done", "--json").stdout)
    assert [(row["node"], row["by"]) for row in done] == [(first, "anna")]
    assert isinstance(ring(config, "mark", "nobody", "done").exception, ConfigError)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Two runs that drew seven nodes each; the classes of the first are known."""
    path = tmp_path_factory.mktemp("sampled") / "ringfence.toml"
    path.write_text(TOML + "[audit]\nsample_nodes = 7\n")
    settings = load(path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=2, per_run=120, known_runs=1, known=1.0))
    store.close()
    return str(path)


def test_the_sample_lists_nodes_to_label_without_their_sets(sampled):
    rows = json.loads(ring(sampled, "worklist", "--sample", "--json").stdout)
    assert {row["run"] for row in rows} == {2}
    assert len(rows) == 7
    assert not {"p", "size", "class"} & set(rows[0])
    every = ring(sampled, "worklist", "--sample", "--known", "any", "--csv").stdout
    assert len(list(csv.DictReader(io.StringIO(every)))) == 14
    ring(sampled, "mark", rows[0]["node"], "done", "--who", "me")
    assert len(json.loads(ring(sampled, "worklist", "--sample", "--json").stdout)) == 6
    assert "Please find out the class" in ring(sampled, "worklist", "--sample").stdout
    first = json.loads(ring(sampled, "worklist", "--sample", "--run", "1", "--json").stdout)
    assert first == []


def test_the_sample_is_not_filtered_by_what_the_model_says(sampled, config):
    wrong = ring(sampled, "worklist", "mule", "--sample")
    assert isinstance(wrong.exception, ConfigError)
    assert "--sample with class" in wrong.exception.found
    assert "No node of the audit sample" in ring(config, "worklist", "--sample").stdout


def test_status_says_the_sample_first(sampled, config):
    text = ring(sampled, "status").stdout
    assert text.splitlines()[1].startswith("Audit sample, runs up to")
    told = json.loads(ring(sampled, "status", "--json").stdout)["sample"]
    assert (told["nodes"], told["unknown"]) == (14, 7)
    assert told["coverage_high"] >= told["coverage_low"] > 0
    assert json.loads(ring(config, "status", "--json").stdout)["sample"] is None
