"""Whether the chain's key is this user's alone, and manifests are those that were recorded."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator

from ringfence.connector.store.engine import Store
from ringfence.connector.store.models import manifests
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import key_source
from ringfence.jobs.project.folders import MODELS, project_folder
from ringfence.jobs.project.model_files import MANIFEST, WEIGHTS
from ringfence.jobs.setup.finding import Finding

OTHERS_MAY_READ = 0o077


def check_key_files(store: Store, settings: Settings) -> Iterator[Finding]:
    """Nobody else may read the chain's key: who has it can seal any entry."""
    del store
    source = key_source(settings)
    for path in dict.fromkeys((source.file, source.next_file)):
        if os.name != "posix" or not path.exists():
            continue
        mode = path.stat().st_mode & 0o777
        if mode & OTHERS_MAY_READ:
            yield Finding(
                "warning",
                f"{path} is open to other users of this machine (mode {mode:04o}): who has read "
                "the key can seal entries of the audit chain",
                f"chmod 600 {path}, then ringfence rekey",
            )


def check_model_files(store: Store, settings: Settings) -> Iterator[Finding]:
    """The manifests and weights in the models folder are those that the audit store names.

    A run takes the manifest from SQL and checks weights by hash; people and tools read the files.
    A version that is not on this machine is no finding.
    """
    folder = project_folder(settings.engine.folder, settings.project) / MODELS
    for recorded in manifests(store, settings.project):
        facts = json.loads(recorded)
        version = str(facts.get("version", ""))
        manifest, weights = folder / version / MANIFEST, folder / version / WEIGHTS
        if not version or not (folder / version).is_dir():
            continue
        restore = "restore the folder from a backup, or: ringfence train"
        if not manifest.is_file() or manifest.read_text(errors="replace").strip() != recorded:
            yield Finding("warning", f"{manifest} is not what was recorded of {version}", restore)
        sealed = facts.get("weights_sha256")
        if not weights.is_file() or _digest(weights.read_bytes()) != sealed:
            yield Finding("warning", f"{weights} is not the file that was trained", restore)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
