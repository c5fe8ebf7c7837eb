"""Configurations of several projects in one process, each with a file of variables of its own."""

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.jobs.config.sources.projects import load_projects

TOML = 'project = "{}"\n[graph]\nlabel = "A"\nkey = "id"\nfeatures = "x"\nclass_property = "kind"\n'


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("cards", "loans"):
        (tmp_path / f"{name}.toml").write_text(TOML.format(name))
    return [tmp_path / "cards.toml", tmp_path / "loans.toml"]


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def secret(value):
    return None if value is None else value.get_secret_value()


def test_each_project_has_the_secrets_of_its_file(files, write, monkeypatch):
    monkeypatch.setenv("RINGFENCE_NEO4J_PASSWORD", "for all")
    monkeypatch.setenv("RINGFENCE_AUDIT_PASSWORD", "of all")
    token = write("token", "from a file\n")
    cards = write("cards.env", f"# of cards\n\nRINGFENCE_SERVE_TOKEN_FILE={token}\n")
    loans = write(
        "loans.env",
        f"export RINGFENCE_SERVE_TOKEN='of loans'\nRINGFENCE_NEO4J_PASSWORD_FILE={token}\n",
    )
    both = load_projects(files, [cards, loans])
    assert [secret(each.serve.token) for each in both] == ["from a file", "of loans"]
    assert [secret(each.neo4j.password) for each in both] == ["for all", "from a file"]
    assert [secret(each.audit.password) for each in both] == ["of all", "of all"]


def test_without_files_the_environment_is_that_of_all(files, monkeypatch):
    """The control: what tells two projects apart is the files alone."""
    monkeypatch.setenv("RINGFENCE_SERVE_TOKEN", "of all")
    assert [secret(each.serve.token) for each in load_projects(files, [])] == ["of all"] * 2


def test_one_project_may_have_a_file_too(files, write):
    file = write("cards.env", "RINGFENCE_SERVE_TOKEN=of cards")
    (cards,) = load_projects(files[:1], [file])
    assert secret(cards.serve.token) == "of cards"


@pytest.mark.parametrize("count", [1, 3])
def test_there_is_a_file_for_each_configuration_or_for_none(files, write, count):
    with pytest.raises(ConfigError, match=f"2 --config and {count} --env-file"):
        load_projects(files, [write(f"{n}.env", "") for n in range(count)])


def test_a_line_that_is_no_assignment_is_named_and_not_repeated(files, write):
    file = write("cards.env", "RINGFENCE_PROJECT=x\nhunter2\n")
    with pytest.raises(ConfigError, match=r"line 2 of .*cards\.env assigns no variable") as refused:
        load_projects(files[:1], [file])
    assert "hunter2" not in str(refused.value)


def test_a_name_that_is_no_setting_is_refused_in_a_file_too(files, write):
    with pytest.raises(ConfigError, match="RINGFENCE_SERVE_TOKN is no setting"):
        load_projects(files[:1], [write("cards.env", "RINGFENCE_SERVE_TOKN=x")])


def test_a_file_that_is_not_there_is_named(files, tmp_path):
    with pytest.raises(ConfigError, match="can't be read"):
        load_projects(files[:1], [tmp_path / "nowhere.env"])
