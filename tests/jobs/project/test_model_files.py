"""A trained model on disk: whole before anybody names it, and this user's alone."""

import os
import stat
from pathlib import Path

import numpy as np

from ringfence.connector.store.engine import dumps
from ringfence.jobs.project.model_files import load_model, save_model
from ringfence.jobs.project.network_inputs import Scaling
from ringfence.models.arrays import as_array
from ringfence.models.networks import build

FACTS = {
    "network": "mlp",
    "in_features": 4,
    "classes": ["a", "b"],
    "options": {"hidden": 8},
    "promise": {"score": "APS"},
}


def save(folder):
    network = build("mlp", 4, 2, hidden=8, seed=1)
    weights = {name: as_array(value) for name, value in network.state_dict().items()}
    scaling = Scaling(np.zeros(4, np.float32), np.ones(4, np.float32))
    return save_model(folder, "v1", weights, scaling, {"APS": np.zeros(1)}, FACTS)


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
