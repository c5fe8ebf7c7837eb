"""`ringfence report` on the command line: periods, packs, and what is printed."""

import csv
import json

import pytest
from typer.testing import CliRunner

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.cli.app import app
from ringfence.jobs.config.load import load
from ringfence.jobs.samples.audit_store import Plan, fill_store

TOML = """
project = "p"
[neo4j]
uri = "bolt://127.0.0.1:1"
[graph]
label = "Account"
key = "id"
features = "features"
class_property = "kind"
[audit]
groups = ["region"]
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("project") / "ringfence.toml"
    path.write_text(TOML)
    settings = load(path)
    store = open_store(settings.audit.url)
    fill_store(store, settings, Plan(runs=3, per_run=30, calibration=60))
    store.close()
    return str(path)


def ask(config, *arguments):
    return CliRunner().invoke(app, ["report", "--config", config, *arguments])


def test_a_report_of_a_period_counts_its_coverage(config, tmp_path):
    done = ask(config, "-o", str(tmp_path), "-f", "csv", "-f", "html", "-f", "json",
               "-f", "parquet", "--from", "2020-01-01", "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    with (tmp_path / "coverage-period.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["nodes"] for row in rows if row["of"] == "total"] == ["90"]
    assert {row["name"] for row in rows if row["of"] == "run"} == {"1", "2", "3"}
    assert "Coverage of runs decided from 2020-01-01" in (tmp_path / "report.html").read_text()
    assert "coverage-period" in json.loads((tmp_path / "report.json").read_text())["tables"]
    assert (tmp_path / "coverage-period.parquet").exists()


def test_without_a_period_there_is_no_such_table(config, tmp_path):
    ask(config, "-o", str(tmp_path), "-f", "csv")
    assert not (tmp_path / "coverage-period.csv").exists()
    assert (tmp_path / "runs.csv").exists()


def test_a_pack_says_what_it_holds_and_how_it_is_checked(config, tmp_path):
    path = tmp_path / "audit.zip"
    done = ask(config, "--pack", str(path), "--salted-keys")
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert "3 runs decided since the first run, 90 predictions." in text
    assert "It is not signed. For a key to sign packs with:" in text
    assert "hand it over apart" in text
    assert "verify_pack.py" in text
    body = json.loads(ask(config, "--pack", str(path), "--json").stdout)
    assert (body["runs"], body["predictions"], body["salt_file"]) == (3, 90, None)


@pytest.mark.parametrize("period", [("--quarter", "2026Q5"), ("--quarter", "1999Q1")])
def test_a_period_that_cannot_be_is_an_error_before_anything_is_written(config, period, tmp_path):
    done = ask(config, "-o", str(tmp_path / "out"), *period)
    assert isinstance(done.exception, ConfigError)
    assert not (tmp_path / "out").exists()
