"""`ringfence key`: the first training makes it, the graph has it, a crash in between is settled."""

import json

import pytest
from typer.testing import CliRunner

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError
from ringfence.connector.neo4j.write.fence import read_anchor
from ringfence.jobs.cli.app import app
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project.signing_keys import read_public_key, run_new_signing_key
from ringfence.jobs.scoring.score import run_scoring
from tests.stores import sqlite


def anchored(workspace):
    return read_anchor(workspace.graph, workspace.project).public_key


@sqlite
def test_the_key_of_the_training_is_in_the_graph_and_a_new_one_takes_its_place(scored):
    workspace = scored.workspace
    first = read_public_key(workspace.settings)
    assert workspace.signing_keys.file.stat().st_mode & 0o777 == 0o600
    assert (first.was, first.file) == (None, str(workspace.signing_keys.file))
    assert anchored(workspace) == first.public_key
    second = run_new_signing_key(workspace)
    assert (second.was, anchored(workspace)) == (first.public_key, second.public_key)
    assert run_verification(workspace).problems == ()
    workspace.signing_keys.file.unlink()  # a lost key: another one can be made
    third = run_new_signing_key(workspace)
    assert third.was == second.public_key
    assert run_verification(workspace).problems == ()


class Died(BaseException):
    pass


@sqlite
@pytest.mark.parametrize("place", fault_points.SIGNING_KEY_NAMES)
def test_a_rotation_that_died_is_finished_or_undone_by_the_next_verb(scored, place, monkeypatch):
    workspace = scored.workspace
    before = read_public_key(workspace.settings).public_key

    def die(name):
        if name == place:
            raise Died

    with monkeypatch.context() as patch:
        patch.setattr(fault_points, "reach", die)
        with pytest.raises(Died):
            run_new_signing_key(workspace)
    assert workspace.signing_keys.next_file.exists()
    scored.arrive(scored.later[0])
    run_scoring(workspace)
    assert not workspace.signing_keys.next_file.exists()
    after = read_public_key(workspace.settings)
    assert (after.public_key == before) == (place == fault_points.SIGNING_KEY_NAMES[0])
    assert after.file is not None
    assert anchored(workspace) == after.public_key
    assert run_verification(workspace).problems == ()


@sqlite
def test_show_prints_the_key_and_a_project_without_one_is_told_what_to_do(scored, tmp_path):
    settings = scored.workspace.settings
    shown = read_public_key(settings)
    assert shown.pem.startswith("-----BEGIN PUBLIC KEY-----")
    with pytest.raises(ConfigError, match="no signing key yet") as raised:
        read_public_key(settings.model_copy(update={"project": "another"}))
    assert raised.value.next_step == "ringfence key new"
    assert "Usage" in CliRunner().invoke(app, ["key", "show", "--help"]).output
    assert json.dumps(shown.public_key)
