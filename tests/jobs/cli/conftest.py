"""A command line in this process, and a project on a real graph to type commands in."""

import os
import sys
from dataclasses import dataclass

import pytest

from ringfence.jobs.cli.app import main
from ringfence.jobs.samples.accounts import sample_toml


@dataclass(frozen=True)
class Done:
    stdout: str
    stderr: str


@pytest.fixture
def ringfence(monkeypatch, capfd):
    """Type a command in this process, with an environment and a folder of its own."""

    def type_(*arguments, cwd, env=None, code=0):
        with monkeypatch.context() as here:
            for name in [name for name in os.environ if name.startswith(("RINGFENCE", "NEO4J_"))]:
                here.delenv(name)
            for name, value in (env or {}).items():
                here.setenv(name, value)
            here.chdir(cwd)
            here.setattr(sys, "argv", ["ringfence", *arguments])
            capfd.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
            done = Done(*capfd.readouterr())
        assert (ended.value.code or 0) == code, done.stdout + done.stderr
        return done

    return type_


@pytest.fixture
def project(graph, tmp_path):
    """A folder with a configuration for `graph`, and the environment with its login."""
    (tmp_path / "ringfence.toml").write_text(
        sample_toml(graph.uri, "cli").replace(
            "[model]", "[model]\nmax_epochs = 20\ngraph_check = false"
        )
    )
    user, password = graph.auth
    return tmp_path, {"RINGFENCE_NEO4J_PASSWORD": password, "RINGFENCE_NEO4J_USER": user}
