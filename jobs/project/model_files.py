"""A trained model on disk: weights as safetensors and a JSON manifest with hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import deserialize
from safetensors.numpy import save as save_arrays

from ringfence.connector.errors import ModelError
from ringfence.connector.files import (
    PRIVATE_FOLDER,
    make_private_folder,
    sync_folder,
    write_durably,
)
from ringfence.connector.json_types import JsonObject
from ringfence.connector.store.engine import dumps
from ringfence.jobs.project.network_inputs import Scaling
from ringfence.jobs.project.promise import PROMISE_KEY
from ringfence.models.inference import InferencePlan, plan_named

Arrays = dict[str, NDArray[Any]]

WEIGHTS = "weights.safetensors"
MANIFEST = "manifest.json"
FORMAT = 1
NETWORK = "network."  # what the names of the network's own weights begin with
NAIVE = "naive_scores."  # and those of the naive calibration scores, by score
STOPPED_BY_KEY = "stopped_by"
"""`latest` where the latest train and validation nodes ended training, `drawn` where drawn ones."""

SCORER_CHOICE_KEY = "scorer_choice"
"""What `[model] network = "auto"` tried, with log losses, and what it took."""

TREE_RECIPE_KEY = "tree_recipe"
"""How the trees of a blend were grown; `recipe` is that of its network."""

TREE_COUNTS_KEY = "tree_counts"
"""Which neighbours trees count: `context`, or `all`, as in versions without the key."""

SEEN_KEY = "seen"
"""What the training of counts saw beside its own nodes: `arrived` is every node that had arrived by
the latest of them; versions without the key saw context alone."""

GRAPH_CHECK_KEY = "graph_check"
"""What the relationships bring: the scorer fitted again without them, and with other ends."""
#: Kinds of numbers in a safetensors file, as numpy reads them.
KINDS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A model ready to run: the network's weights by name, scaling, naive scores, its manifest."""

    version: str
    weights: Arrays
    scaling: Scaling
    naive_scores: NDArray[np.float64]
    manifest: Mapping[str, Any]
    naive_by_score: Arrays = field(default_factory=dict)

    def naive_of(self, score: str) -> NDArray[np.float64]:
        """Return the naive calibration scores by a score's name.

        Models from before every score was kept have those of the one they were trained with.
        """
        return self.naive_by_score.get(score, self.naive_scores)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of the network's outputs."""
        return tuple(self.manifest["classes"])

    @property
    def network(self) -> str:
        """Name of the network: one that ringfence has, or a user's ``package.module:Class``."""
        return str(self.manifest["network"])

    @property
    def options(self) -> dict[str, Any]:
        """Options of the network's constructor."""
        return dict(self.manifest["options"])

    def plan(self) -> InferencePlan | None:
        """Return how the network's outputs follow a change; None where it has no such layers."""
        return plan_named(
            self.network, self.weights, self.scaling.mean, self.scaling.spread, self.options
        )


def save_model(
    folder: Path,
    version: str,
    weights: Arrays,
    scaling: Scaling,
    naive_scores: Mapping[str, NDArray[np.float64]],
    facts: Mapping[str, Any],
) -> JsonObject:
    """Write weights and manifest below `folder`, wait for the disk, and return the manifest.

    SQL names the model after this: what it names is there, also after the machine lost power.
    """
    arrays = {f"{NETWORK}{name}": np.asarray(value, order="C") for name, value in weights.items()}
    arrays |= {
        "scaling.mean": scaling.mean,
        "scaling.spread": scaling.spread,
        "naive_scores": naive_scores[facts[PROMISE_KEY]["score"]],
        **{f"{NAIVE}{name}": scores for name, scores in naive_scores.items()},
    }
    blob = save_arrays(arrays)
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
    views: list[tuple[str, dict[str, Any]]] = deserialize(blob)  # type: ignore[no-untyped-call]
    arrays = {name: _read_array(view) for name, view in views}
    scaling = Scaling(arrays["scaling.mean"], arrays["scaling.spread"])
    network = {
        name.removeprefix(NETWORK): value
        for name, value in arrays.items()
        if name.startswith(NETWORK)
    }
    naive = {
        name.removeprefix(NAIVE): value for name, value in arrays.items() if name.startswith(NAIVE)
    }
    return SavedModel(version, network, scaling, arrays["naive_scores"], manifest, naive)


def _read_array(view: dict[str, Any]) -> NDArray[Any]:
    """Read one array of a safetensors file; bfloat16, which numpy has not, widened to float32."""
    array = np.frombuffer(view["data"], KINDS[view["dtype"]]).reshape(view["shape"])
    if view["dtype"] == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array
