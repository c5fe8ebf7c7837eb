"""Files below [engine] folder: each project has its own, and older folders become so."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.project import folders
from ringfence.jobs.project.folders import MIRROR, MODELS, TABLES, project_folder
from ringfence.jobs.project.seed_key import seed_keys
from ringfence.jobs.project.workspace import open_workspace
from ringfence.jobs.samples import demo, demo_project
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.training.train import run_training
from tests.stores import sqlite

HOSTILE = [
    "",
    ".",
    "..",
    "../../etc",
    "a/b",
    "a\\b",
    "CON",
    "a" * 300,
    "ä",
    "a\x00b",
    " ",
    "é\u202e",
]


@contextmanager
def other_project(workspace, name="other"):
    """Another project with the same mapping, in the same folder and the same stores."""
    with open_workspace(workspace.settings.model_copy(update={"project": name})) as opened:
        yield opened


def lay_out_as_before(workspace):
    """Put the project's files where the first version kept them."""
    folder = workspace.settings.engine.folder
    for name in (MODELS, MIRROR, TABLES):
        (folder / name).mkdir(exist_ok=True)
        for part in (workspace.folder / name).iterdir():
            part.rename(folder / name / part.name)
    shutil.rmtree(folder / "projects")
    return folder


def test_hostile_names_make_different_safe_folders():
    places = [project_folder(Path("/f"), name) for name in [*HOSTILE, "a", "A", "a_b", "a b"]]
    assert len({str(place).casefold() for place in places}) == len(places)
    for place in places:
        assert place.parent == Path("/f/projects")
        assert len(place.name) <= 60
        assert place.name.isascii()
        assert place.name.replace("-", "").replace("_", "").isalnum()


def test_a_demo_replaces_what_an_earlier_one_left_in_either_layout(tmp_path):
    folder = tmp_path / ".ringfence"
    for name in (MODELS, MIRROR, TABLES, f"projects/demo/{MODELS}", "neo4j"):
        (folder / name).mkdir(parents=True)
    settings = demo_project._write_configuration(tmp_path, demo.PAYMENTS_TOML)
    assert settings.engine.folder == folder
    left = sorted(place for place in folder.rglob("*") if not place.is_dir())
    assert left == [seed_keys(settings).file]  # the demo's own published key
    assert (folder / "neo4j").is_dir()
    assert not [place for place in folder.rglob("*") if place.name in (MODELS, MIRROR, TABLES)]


@sqlite
def test_two_projects_in_one_folder_both_evaluate_all_their_nodes(trained):
    workspace = trained.workspace
    with other_project(workspace) as second:
        run_training(second)
        assert workspace.folder != second.folder
        for batch in (None, *trained.later):
            if batch is not None:
                trained.arrive(batch)
            reports = [run_scoring(project) for project in (workspace, second)]
            assert reports[0].evaluated == reports[1].evaluated > 0
        for project in (workspace, second):
            assert run_verification(project).problems == ()


@sqlite
def test_with_one_folder_for_both_the_second_would_evaluate_nobody(grown, monkeypatch):
    """The control of the test before."""
    monkeypatch.setattr(
        "ringfence.jobs.project.workspace.project_folder", lambda folder, _project: folder / "all"
    )
    workspace = grown.workspace
    with other_project(workspace) as second:
        for project in (workspace, second):
            run_training(project)
        assert run_scoring(workspace).evaluated > 0
        grown.arrive(grown.later[0])
        assert run_scoring(workspace).evaluated == 100
        assert run_scoring(second).evaluated == 0


@pytest.mark.parametrize("interrupted_after", [None, 0, 1, 2])
@sqlite
def test_a_folder_as_the_first_version_left_it_moves_over(scored, monkeypatch, interrupted_after):
    workspace = scored.workspace
    folder = lay_out_as_before(workspace)
    scored.arrive(scored.later[0])
    if interrupted_after is not None:
        with monkeypatch.context() as broken:
            broken.setattr(folders, "_rename", crash_after(interrupted_after, folders._rename))
            with pytest.raises(KeyboardInterrupt):
                run_scoring(workspace)
    report = run_scoring(workspace)
    assert report.evaluated == report.new_nodes == 100  # what is new was read, not all
    assert "nothing was kept" not in report.run.notes[0]  # of the forward pass
    assert not [name for name in (MODELS, MIRROR, TABLES) if (folder / name).exists()]
    assert run_verification(workspace).problems == ()


def crash_after(count, rename):
    done = []

    def crashing(old, new):
        if len(done) == count:
            raise KeyboardInterrupt
        done.append(old)
        rename(old, new)

    return crashing


@sqlite
def test_a_mirror_that_two_projects_have_used_is_read_anew(trained):
    workspace = trained.workspace
    with other_project(workspace) as second:
        run_training(second)
        run_scoring(workspace)
        models = [*second.models.iterdir()]
        folder = workspace.settings.engine.folder
        shutil.move(models[0], folder / models[0].name)
        lay_out_as_before(workspace)
        shutil.move(folder / models[0].name, folder / MODELS / models[0].name)
        trained.arrive(trained.later[0])
        first_report, second_report = run_scoring(workspace), run_scoring(second)
        assert first_report.evaluated == 100
        assert second_report.evaluated == 100 + len(trained.first.nodes) - sum(
            trained.labelled[trained.first.nodes]
        )
        assert not (folder / MODELS).exists()
