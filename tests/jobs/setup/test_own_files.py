"""`ringfence doctor` on files that others can read, or that are not those on record."""

import hashlib
import json

import pytest

from ringfence.connector.store.audit_chain.keys import KEY_FILE
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.models import record_model
from ringfence.jobs.project.folders import MODELS, project_folder
from ringfence.jobs.setup.checks.own_files import check_key_files, check_model_files
from ringfence.jobs.setup.checks.store import MIGRATED_STORE_CHECKS
from tests.jobs.integrity.sample_record import project, writing


@pytest.fixture
def opened(request, tmp_path):
    with project(request, tmp_path, "sqlite") as (store, settings):
        yield store, settings


def test_doctor_runs_both_checks():
    assert {check_key_files, check_model_files} <= set(MIGRATED_STORE_CHECKS)


def test_a_key_that_others_can_read_is_named(opened):
    store, settings = opened
    key = settings.engine.folder / KEY_FILE
    key.chmod(0o600)
    assert list(check_key_files(store, settings)) == []
    for mode in (0o640, 0o604, 0o666):
        key.chmod(mode)
        (finding,) = check_key_files(store, settings)
        assert finding.level == "warning"
        assert f"mode {mode:04o}" in finding.text
        assert finding.fix == f"chmod 600 {key}, then ringfence rekey"


@pytest.fixture
def trained(opened):
    """A version with its two files, beside the sample's versions, which have none."""
    store, settings = opened
    weights = b"weights"
    facts = {"version": "here", "classes": ["a"], "counts": {}}
    manifest = dumps(facts | {"weights_sha256": hashlib.sha256(weights).hexdigest()})
    folder = project_folder(settings.engine.folder, settings.project) / MODELS / "here"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(manifest + "\n")
    (folder / "weights.safetensors").write_bytes(weights)
    with writing(store, settings) as writer:
        digest = hashlib.sha256(manifest.encode()).hexdigest()
        record_model(writer, "here", manifest, digest, [])
    return store, settings, folder


def test_an_edited_manifest_is_named(trained):
    store, settings, folder = trained
    assert list(check_model_files(store, settings)) == []
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"classes": ["b"]}))
    (finding,) = check_model_files(store, settings)
    assert f"{path} is not what was recorded of here" in finding.text
    path.unlink()
    assert len(list(check_model_files(store, settings))) == 1


def test_other_weights_are_named(trained):
    store, settings, folder = trained
    (folder / "weights.safetensors").write_bytes(b"others")
    (finding,) = check_model_files(store, settings)
    assert "weights.safetensors is not the file that was trained" in finding.text
