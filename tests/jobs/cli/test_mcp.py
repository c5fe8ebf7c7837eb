"""`ringfence mcp` says what an agent's configuration needs, and what is missing."""

import json
import sys

import pytest
from typer.testing import CliRunner

from ringfence.connector import extras
from ringfence.connector.errors import ConfigError
from ringfence.jobs.cli.app import app
from ringfence.jobs.samples.accounts import sample_toml


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "ringfence.toml"
    path.write_text(sample_toml("bolt://127.0.0.1:1", "agents"))
    return path


def test_it_prints_the_entry_for_an_agents_configuration(config):
    done = CliRunner().invoke(app, ["mcp", "--json", "--config", str(config)])
    entry = json.loads(done.output)["mcpServers"]["ringfence"]
    assert entry["command"] == sys.executable
    assert entry["args"] == ["-m", "ringfence", "mcp", "--config", str(config)]


def test_without_the_extra_it_says_what_to_type(config, monkeypatch):
    monkeypatch.setattr(extras, "_is_installed", lambda name: name != "mcp")
    done = CliRunner().invoke(app, ["mcp", "--config", str(config)])
    assert isinstance(done.exception, ConfigError)
    assert done.exception.next_step == "pip install 'ringfence[mcp]'"
