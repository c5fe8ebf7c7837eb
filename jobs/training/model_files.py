"""A trained model on disk: weights as safetensors and a JSON manifest with hashes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from ringfence.connector.errors import ModelError
from ringfence.connector.files import (
    PRIVATE_FOLDER,
    make_private_folder,
    sync_folder,
    write_durably,
)
from ringfence.connector.store.engine import dumps
from ringfence.jobs.training.tensors import Scaling
from ringfence.models.networks import build

WEIGHTS = "weights.safetensors"
MANIFEST = "manifest.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A model ready to run: network in evaluation mode, scaling, naive scores, its manifest."""

    version: str
    network: torch.nn.Module
    scaling: Scaling
    naive_scores: Tensor
    manifest: dict[str, Any]

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of the network's outputs."""
        return tuple(self.manifest["classes"])


def save_model(
    folder: Path,
    version: str,
    state: dict[str, Tensor],
    scaling: Scaling,
    naive_scores: Tensor,
    facts: dict[str, Any],
) -> dict[str, Any]:
    """Write weights and manifest below `folder`, wait for the disk, and return the manifest.

    SQL names the model after this: what it names is there, also after the machine lost power.
    """
    tensors = {f"network.{name}": value.contiguous() for name, value in state.items()}
    tensors |= {
        "scaling.mean": scaling.mean.contiguous(),
        "scaling.spread": scaling.spread.contiguous(),
        "naive_scores": naive_scores.contiguous(),
    }
    blob = save_tensors(tensors)
    manifest = {
        "format": FORMAT,
        "version": version,
        "weights_sha256": hashlib.sha256(blob).hexdigest(),
        **facts,
    }
    place = folder / version
    make_private_folder(folder)
    place.mkdir(mode=PRIVATE_FOLDER)
    write_durably(place / WEIGHTS, blob)
    write_durably(place / MANIFEST, f"{dumps(manifest)}\n".encode())
    for parent in (place, folder):
        sync_folder(parent)
    return manifest


def load_model(folder: Path, recorded: str) -> SavedModel:
    """Return the model of the manifest in the audit store, its file checked by hash."""
    manifest = json.loads(recorded)
    version = str(manifest["version"])
    path = folder / version / WEIGHTS
    try:
        blob = path.read_bytes()
    except OSError:
        raise ModelError(
            found=f"the weights of model {version} are not at {path}",
            needed="the folder that `ringfence train` wrote",
            next_step="copy it here from the machine that trained, or: ringfence train",
        ) from None
    if hashlib.sha256(blob).hexdigest() != manifest["weights_sha256"]:
        raise ModelError(
            found=f"{path} is not the file that was trained (its hash differs)",
            needed=f"weights with SHA-256 {manifest['weights_sha256'][:16]}…",
            next_step="restore the file, or: ringfence train",
        )
    return _assemble(version, load_tensors(blob), manifest)


def _assemble(version: str, tensors: dict[str, Tensor], manifest: dict[str, Any]) -> SavedModel:
    network = build(
        manifest["network"], manifest["in_features"], len(manifest["classes"]),
        **manifest["options"],
    )  # fmt: skip
    network.load_state_dict(
        {
            name.removeprefix("network."): value
            for name, value in tensors.items()
            if name.startswith("network.")
        }
    )
    scaling = Scaling(tensors["scaling.mean"], tensors["scaling.spread"])
    return SavedModel(version, network.eval(), scaling, tensors["naive_scores"], manifest)
