"""A trained model on disk: whole before anybody names it, and this user's alone."""

import os
import stat
from pathlib import Path

import torch

from ringfence.connector.store.engine import dumps
from ringfence.jobs.training.model_files import load_model, save_model
from ringfence.jobs.training.tensors import Scaling
from ringfence.models.networks import build

FACTS = {"network": "mlp", "in_features": 4, "classes": ["a", "b"], "options": {"hidden": 8}}


def save(folder):
    network = build("mlp", 4, 2, hidden=8, seed=1)
    scaling = Scaling(torch.zeros(4), torch.ones(4))
    return save_model(folder, "v1", network.state_dict(), scaling, torch.zeros(1), FACTS)


def test_a_model_that_was_saved_is_on_the_disk_file_by_file_and_name_by_name(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync

    def note(descriptor):
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    models = tmp_path / "models"
    save(models)
    files = [models / "v1" / "weights.safetensors", models / "v1" / "manifest.json"]
    assert synced == [str(path) for path in (*files, models / "v1", models)]


def test_a_saved_model_is_closed_to_other_users_and_loads(tmp_path):
    before = os.umask(0o022)
    try:
        manifest = save(tmp_path / "models")
    finally:
        os.umask(before)
    made = [*tmp_path.rglob("*")]
    assert {stat.S_IMODE(one.stat().st_mode) for one in made if one.is_file()} == {0o600}
    assert {stat.S_IMODE(one.stat().st_mode) for one in made if one.is_dir()} == {0o700}
    assert load_model(tmp_path / "models", dumps(manifest)).classes == ("a", "b")
