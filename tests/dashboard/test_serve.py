"""`ringfence serve` in a process of its own: one project, several, and what it refuses."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from ringfence.connector.store.engine import open_store
from ringfence.jobs.config.load import load
from ringfence.jobs.samples.audit_store import Plan, fill_store
from tests.patience import PATIENCE_SECONDS

TOML = (
    'project = "{}"\n[neo4j]\nuri = "bolt://127.0.0.1:1"\n[audit]\nurl = "sqlite:///{}.db"\n'
    '[graph]\nlabel = "A"\nkey = "id"\nfeatures = "x"\nclass_property = "kind"\n'
)
COMMAND = [sys.executable, "-m", "ringfence", "serve", "--port", "0", "--json"]


@pytest.fixture
def folder(tmp_path):
    for name in ("cards", "loans"):
        (tmp_path / f"{name}.toml").write_text(TOML.format(name, name))
        (tmp_path / f"{name}.env").write_text(f"RINGFENCE_SERVE_TOKEN=the token of {name}\n")
        settings = load(tmp_path / f"{name}.toml", {})
        store = open_store(settings.audit.url)
        fill_store(store, settings, Plan(runs=1, per_run=20))
        store.close()
    return tmp_path


def command(*files, host="127.0.0.1", env_files=()):
    options = [word for file in files for word in ("--config", file)]
    options += [word for file in env_files for word in ("--env-file", file)]
    return [*COMMAND, "--host", host, *options]


@contextmanager
def serving(folder, *files, **options):
    """Start the command; yield what it prints and how to ask it."""
    with subprocess.Popen(
        command(*files, **options), cwd=folder, stdout=subprocess.PIPE, text=True, env=without()
    ) as process:
        try:
            text = process.stdout.readline()
            while text.count("{") != text.count("}") or "{" not in text:
                text += process.stdout.readline()
            printed = json.loads(text)
            yield printed, lambda path, **headers: ask(printed["url"], path, headers)
        finally:
            process.terminate()


def without():
    return {name: text for name, text in os.environ.items() if not name.startswith("RINGFENCE_")}


def ask(url, path, headers):
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_SECONDS)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def refused(folder, *files, **options):
    done = subprocess.run(
        command(*files, **options), cwd=folder, capture_output=True, text=True, env=without()
    )
    assert done.returncode == 1
    return done.stdout + done.stderr


def test_several_projects_are_served_each_with_the_token_of_its_file(folder):
    files, env_files = ("cards.toml", "loans.toml"), ("cards.env", "loans.env")
    with serving(folder, *files, env_files=env_files) as (printed, get):
        url = printed["url"]
        assert printed["projects"] == {n: f"{url}p/{n}/" for n in ("cards", "loans")}
        for name, other in (("cards", "loans"), ("loans", "cards")):
            right = {"Authorization": f"Bearer the token of {name}"}
            assert get(f"/p/{name}/metrics", **right) == 200
            assert get(f"/p/{other}/metrics", **right) == 401
        assert get("/") == get("/readyz") == get("/p/loans/healthz") == 200
        assert get("/runs") == 404


def test_a_single_configuration_is_served_at_the_addresses_of_old(folder):
    with serving(folder, "cards.toml") as (printed, get):
        assert list(printed) == ["url"]
        assert get("/runs") == get("/metrics") == get("/readyz") == 200
        assert get("/p/cards/runs") == 404


def test_what_can_not_be_served_together_is_refused(folder):
    assert "about project 'cards'" in refused(folder, "cards.toml", "cards.toml")
    assert "--env-file" in refused(folder, "cards.toml", "loans.toml", env_files=["cards.env"])
    (folder / "empty.env").write_text("")
    both = {"host": "0.0.0.0", "env_files": ["cards.env", "empty.env"]}
    assert "other machines" in refused(folder, "cards.toml", "loans.toml", **both)
