"""Secrets from files, and a configuration without any file of settings."""

import os

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.load import load, variable
from ringfence.jobs.config.settings import SECRETS

GRAPH = {
    "RINGFENCE_GRAPH_LABEL": "A",
    "RINGFENCE_GRAPH_KEY": "id",
    "RINGFENCE_GRAPH_FEATURES": "x",
    "RINGFENCE_GRAPH_CLASS_PROPERTY": "kind",
}


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("table", "key"), [(table, key) for table, keys in SECRETS.items() for key in sorted(keys)]
)
def test_every_secret_may_come_from_a_file(tmp_path, table, key):
    (tmp_path / "secret").write_text("0123456789abcdef" * 4 + "\n", encoding="utf-8")
    settings = load(environment=GRAPH | {f"{variable(table, key)}_FILE": "secret"})
    section = getattr(settings, table) if table else settings
    assert getattr(section, key).get_secret_value() == "0123456789abcdef" * 4


def test_only_secrets_come_from_files(tmp_path):
    (tmp_path / "uri").write_text("bolt://localhost")
    with pytest.raises(ConfigError) as refused:
        load(environment=GRAPH | {"RINGFENCE_NEO4J_URI_FILE": "uri"})
    assert "RINGFENCE_NEO4J_URI_FILE is no setting" in refused.value.found


def test_a_secret_given_twice_is_refused(tmp_path):
    (tmp_path / "secret").write_text("a")
    twice = {"RINGFENCE_NEO4J_PASSWORD": "b", "RINGFENCE_NEO4J_PASSWORD_FILE": "secret"}
    with pytest.raises(ConfigError) as refused:
        load(environment=GRAPH | twice)
    assert "both RINGFENCE_NEO4J_PASSWORD and" in refused.value.found


@pytest.mark.parametrize(("content", "found"), [("\n", "is empty"), (None, "can't be read")])
def test_an_empty_or_missing_file_is_named(tmp_path, content, found):
    if content is not None:
        (tmp_path / "secret").write_text(content)
    with pytest.raises(ConfigError) as refused:
        load(environment=GRAPH | {"RINGFENCE_AUDIT_KEY_FILE": "secret"})
    assert found in refused.value.found
    assert "secret" in refused.value.found


def test_the_environment_alone_is_a_configuration_of_the_working_folder(tmp_path):
    settings = load(environment=GRAPH | {"RINGFENCE_PROJECT": "pod"})
    assert settings.project == "pod"
    assert settings.mapping().classified.label == "A"
    assert settings.engine.folder == tmp_path / ".ringfence"
    assert not (tmp_path / "ringfence.toml").exists()


def test_what_the_environment_lacks_is_said_without_a_file_to_correct():
    with pytest.raises(ConfigError) as refused:
        load(environment={"RINGFENCE_GRAPH_LABEL": "A"})
    assert "in the environment: " in refused.value.found
    assert "RINGFENCE_*" in refused.value.next_step


def test_a_file_that_was_asked_for_must_be_there(tmp_path):
    with pytest.raises(ConfigError) as refused:
        load(environment=GRAPH | {"RINGFENCE_CONFIG": "other.toml"})
    assert refused.value.found == "there is no other.toml"
    with pytest.raises(ConfigError):
        load(tmp_path / "none.toml", GRAPH)
    with pytest.raises(ConfigError) as refused:
        load(environment={name: os.environ[name] for name in ("PATH",)})
    assert refused.value.found == "there is no ringfence.toml"
