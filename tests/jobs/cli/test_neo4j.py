"""`ringfence neo4j` finds the server of the configured project, not an empty second one."""

import json
from pathlib import Path

import pytest

from ringfence.jobs.samples.accounts import sample_toml


def configure(folder, place):
    """A configuration whose folder is elsewhere; return where its server's data lies."""
    folder.mkdir(exist_ok=True)
    text = sample_toml("embedded", "shop") + f'\n[engine]\nfolder = "{place}"\n'
    (folder / "ringfence.toml").write_text(text)
    return folder / place / "neo4j"


@pytest.mark.parametrize("how", ["option", "variable", "working folder"])
def test_its_folder_is_that_of_the_configuration(ringfence, tmp_path, how):
    data = configure(tmp_path / "project", "state")
    file = tmp_path / "project/ringfence.toml"
    options = ("--config", str(file)) if how == "option" else ()
    env = {"RINGFENCE_CONFIG": str(file)} if how == "variable" else {}
    cwd = tmp_path / "project" if how == "working folder" else tmp_path
    for verb in ("status", "stop"):
        said = json.loads(ringfence("neo4j", verb, "--json", *options, cwd=cwd, env=env).stdout)
        assert Path(said["data_dir"]) == data, verb


def test_without_a_configuration_it_is_beside_the_working_folder(ringfence, tmp_path):
    said = json.loads(ringfence("neo4j", "status", "--json", cwd=tmp_path).stdout)
    assert Path(said["data_dir"]).resolve() == tmp_path / ".ringfence/neo4j"


GRAPH = {
    "RINGFENCE_GRAPH_LABEL": "Account",
    "RINGFENCE_GRAPH_KEY": "id",
    "RINGFENCE_GRAPH_FEATURES": "features",
    "RINGFENCE_GRAPH_CLASS_PROPERTY": "kind",
}
FOLDER = {"RINGFENCE_ENGINE_FOLDER": "state"}


@pytest.mark.parametrize("env", [GRAPH | FOLDER, FOLDER], ids=["a project", "its folder"])
def test_a_project_of_the_environment_alone_has_its_server(ringfence, tmp_path, env):
    """Where the folder alone is named, `init` is yet to write the file, from the graph in it."""
    for verb in ("status", "stop"):
        said = json.loads(ringfence("neo4j", verb, "--json", cwd=tmp_path, env=env).stdout)
        assert Path(said["data_dir"]).resolve() == tmp_path / "state/neo4j", verb


def test_a_project_of_the_environment_that_is_wrong_is_an_error(ringfence, tmp_path):
    env = {"RINGFENCE_GRAPH_LABEL": "Account"}
    refused = ringfence("neo4j", "start", cwd=tmp_path, env=env, code=1)
    assert "in the environment: " in refused.stderr
    assert not (tmp_path / ".ringfence").exists()


def test_a_folder_that_was_asked_for_overrides_all(ringfence, tmp_path):
    configure(tmp_path, "state")
    said = ringfence("neo4j", "status", "--json", "--data", "other", cwd=tmp_path).stdout
    assert Path(json.loads(said)["data_dir"]).resolve() == tmp_path / "other"


def test_a_configuration_that_is_not_there_is_an_error(ringfence, tmp_path):
    env = {"RINGFENCE_CONFIG": "missing.toml"}
    refused = ringfence("neo4j", "start", cwd=tmp_path, env=env, code=1)
    assert "there is no missing.toml" in refused.stderr
