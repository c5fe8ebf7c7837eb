"""The seed key as a person meets it: made, lost, wrong, replaced; and never shown."""

import json

import pytest

from ringfence.jobs.config.load import load
from ringfence.jobs.project.seed_key import seed_keys

WRONG = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"


@pytest.fixture
def typed(ringfence, project):
    """Type a command in the project's folder; everything that was printed is kept."""
    folder, login = project
    printed = []

    def type_(*arguments, code=0, **more):
        done = ringfence(*arguments, cwd=folder, env={**login, **more}, code=code)
        printed.append(done.stdout + done.stderr)
        return done.stdout if "--json" in arguments and not code else printed[-1]

    return type_, printed


def test_a_lost_key_is_refused_until_somebody_asks_for_another(typed, project):
    command, printed = typed
    folder, login = project
    keys = seed_keys(load(folder / "ringfence.toml", login))
    command("sample", "--nodes", "300", "--labelled", "0.6")
    command("migrate")
    assert "no seed key yet" in command("doctor")
    assert str(keys.file) in " ".join(command("train").split())
    first = keys.file.read_text()
    command("score")
    assert "every machine that scores needs the same one" in " ".join(command("doctor").split())

    keys.file.rename(folder / "elsewhere")
    for verb in (["score"], ["train"], ["train", "--json"]):
        said = " ".join(command(*verb, code=1).split())
        assert "the seed key of model" in said
        assert "ringfence train --new-seed-key" in said
    said = command("score", code=1, RINGFENCE_SEED_KEY=WRONG)
    assert "another key" in " ".join(said.split())
    assert "31 hexadecimal digits" in command("score", code=1, RINGFENCE_SEED_KEY=WRONG[1:])
    assert "can't be recomputed here" in " ".join(command("verify").split())
    (note,) = json.loads(command("verify", "--json"))["notes"]
    assert "RINGFENCE_SEED_KEY" in note
    assert "the seed key of model" in " ".join(command("doctor", code=1).split())
    assert not keys.file.exists()

    command("score", RINGFENCE_SEED_KEY=first)  # the auditor, or another machine
    assert "can't be recomputed" not in command("verify", RINGFENCE_SEED_KEY=first)
    promoted = ("--promote", "--reason", "the key was lost")
    command("train", "--new-seed-key", *promoted)
    second = keys.file.read_text()
    assert second != first
    command("score")
    keys.file.chmod(0o644)
    assert "chmod 600" in " ".join(command("score", code=1).split())
    command("report", "--pack", str(folder / "audit.zip"))
    everything = "".join(printed).lower()
    for key in (first, second, WRONG):
        assert key not in everything
        assert str(int(key, 16)) not in everything


def test_a_repeated_training_has_no_key_to_change(typed):
    command, _ = typed
    assert "--like" in command("train", "--like", "x", "--new-seed-key", code=1)
