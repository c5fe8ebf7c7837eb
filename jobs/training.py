"""`ringfence train`: split the labelled nodes, train on the paper's terms, keep what calibrates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence import __version__
from ringfence.connector import mirror as mirrors
from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.mirror import UNKNOWN, Mirror
from ringfence.connector.models import Member, record_model
from ringfence.connector.refresh import Progress as ReadProgress
from ringfence.connector.refresh import refresh
from ringfence.connector.store import dumps
from ringfence.jobs import model_files
from ringfence.jobs.deciding import policy_of
from ringfence.jobs.settings import ModelSettings
from ringfence.jobs.tensors import Scaling, edge_index, induced, uniforms_of
from ringfence.jobs.threads import threads_for
from ringfence.jobs.workspace import Workspace
from ringfence.models import keyed
from ringfence.models.fitting import Epoch, Trained
from ringfence.models.guarantee import guarantee
from ringfence.models.minibatch import train_in_batches
from ringfence.models.networks import build
from ringfence.models.snapshot import Part, calibration_scores
from ringfence.models.training import train

Roles = dict[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class TrainReport:
    """What `ringfence train` did."""

    version: str
    network: str
    classes: tuple[str, ...]
    nodes: int
    train: int
    validation: int
    calibration: int
    epochs: int
    validation_accuracy: float
    calibration_accuracy: float
    guarantee: str


def run_training(
    workspace: Workspace,
    progress: ReadProgress = lambda _what, _done, _all: None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> TrainReport:
    """Read the whole graph, train a new model version and record it."""
    workspace.require_migrated()
    settings = workspace.settings.model
    policy = policy_of(workspace.settings.conformal)
    with workspace.writer() as writer:
        mirror = refresh(workspace.reader(progress), whole=True).mirror
        classes = _class_order(mirror)
        y = _class_indices(mirror, classes)
        roles = _split(mirror, y, settings)
        scaling, trained = _fit(workspace, mirror, y, roles, len(classes), on_epoch)
        state = {name: value.detach() for name, value in trained.state.items()}
        version = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{_digest(state)[:8]}"
        naive, accuracy = _naive(workspace, mirror, y, roles, scaling, state, len(classes))
        facts = {
            "network": settings.network,
            "options": network_options(settings),
            "in_features": mirror.width,
            "classes": classes,
            "seed": settings.seed,
            "evaluation": {"digest": policy.digest(), "words": policy.words()},
            "software": __version__,
            "recipe": asdict(trained.recipe),
            "curves": asdict(trained.curves),
            "best_epoch": trained.best_epoch,
            "counts": {role: len(rows) for role, rows in roles.items()},
        }
        manifest = model_files.save(workspace.models, version, state, scaling, naive, facts)
        text = dumps(manifest)
        digest = hashlib.sha256(text.encode()).hexdigest()
        record_model(writer, version, text, digest, _members(mirror, y, roles))
        mirrors.save(mirror, workspace.mirror)
    promise = guarantee(len(roles["calibration"]), workspace.settings.conformal.alpha)
    return TrainReport(
        version=version,
        network=settings.network,
        classes=tuple(classes),
        nodes=mirror.size,
        train=len(roles["train"]),
        validation=len(roles["validation"]),
        calibration=len(roles["calibration"]),
        epochs=trained.epochs,
        validation_accuracy=trained.validation_accuracy,
        calibration_accuracy=accuracy,
        guarantee=promise.words,
    )


def network_options(settings: ModelSettings) -> dict[str, Any]:
    """Return the options of the network's constructor."""
    options: dict[str, Any] = {"hidden": settings.hidden}
    if settings.dropout is not None:
        options["dropout"] = settings.dropout
    return options


def network_of(settings: ModelSettings, in_features: int, classes: int) -> torch.nn.Module:
    """Return the configured network, untrained; words where there is no such one."""
    try:
        return build(
            settings.network, in_features, classes, seed=settings.seed, **network_options(settings)
        )
    except ValueError as error:
        raise ConfigError(
            found=f"[model] network: {error}",
            needed="a network that ringfence has, or a module of your own that passes its checks",
        ) from None


def _class_order(mirror: Mirror) -> list[str]:
    seen = np.unique(mirror.classes[mirror.classes != UNKNOWN])
    classes = sorted(mirror.class_names[i] for i in seen)
    if len(classes) < 2:
        found = f"only the class {classes[0]!r}" if classes else "no node with a known class"
        raise ModelError(
            found=f"{found} among {mirror.size} nodes",
            needed="nodes of at least two classes to learn from",
            next_step="check [graph] class_property, then: ringfence doctor",
        )
    return classes


def _class_indices(mirror: Mirror, classes: list[str]) -> NDArray[np.int64]:
    """Classes as the network numbers them [n]; -1 where unknown."""
    order = np.array([classes.index(name) for name in mirror.class_names] + [UNKNOWN])
    return np.asarray(order[mirror.classes], np.int64)


def _split(mirror: Mirror, y: NDArray[np.int64], settings: ModelSettings) -> Roles:
    rows = np.flatnonzero(y != UNKNOWN)
    shares = {
        "train": settings.train,
        "validation": settings.validation,
        "calibration": settings.calibration,
    }
    parts = keyed.split(mirror.keys.take(rows.tolist()), settings.seed, shares)
    roles = {role: rows[mask] for role, mask in parts.items()}
    for role, members in roles.items():
        if len(members) == 0:
            raise ModelError(
                found=f"{len(rows)} labelled nodes leave none for {role}",
                needed="at least one node in each of train, validation and calibration",
                next_step="label more nodes, or change the shares in [model]",
            )
    return roles


def _fit(
    workspace: Workspace,
    mirror: Mirror,
    y: NDArray[np.int64],
    roles: Roles,
    classes: int,
    on_epoch: Callable[[Epoch], None] | None,
) -> tuple[Scaling, Trained]:
    """Train on the subgraph that train and validation nodes induce, and on nothing else."""
    settings = workspace.settings.model
    rows = np.concatenate([roles["train"], roles["validation"]])
    edges = induced(edge_index(mirror, workspace.mapping), rows, mirror.size)
    scaling = Scaling.of(mirror.features[roles["train"]])
    cut = len(roles["train"])
    one_by_one = {"batch_size": settings.batch_size} if settings.batch_size else {}
    with threads_for(edges.size(1), settings.hidden):
        trained = (train_in_batches if one_by_one else train)(
            network_of(settings, mirror.width, classes),
            scaling(mirror.features[rows]),
            edges,
            torch.from_numpy(y[rows]),
            torch.arange(cut),
            torch.arange(cut, len(rows)),
            seed=settings.seed,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            max_epochs=settings.max_epochs,
            patience=settings.patience,
            class_weights=settings.class_weights,
            on_epoch=on_epoch,
            **one_by_one,
        )
    return scaling, trained


def _naive(
    workspace: Workspace,
    mirror: Mirror,
    y: NDArray[np.int64],
    roles: Roles,
    scaling: Scaling,
    state: dict[str, torch.Tensor],
    classes: int,
) -> tuple[torch.Tensor, float]:
    """Calibration scores on the graph of today's labelled nodes, and the accuracy there."""
    settings = workspace.settings.model
    rows = np.concatenate([roles["calibration"], roles["train"], roles["validation"]])
    edges = induced(edge_index(mirror, workspace.mapping), rows, mirror.size)
    network = build(settings.network, mirror.width, classes, **network_options(settings))
    network.load_state_dict(state)
    with torch.no_grad():
        logits = network.eval()(scaling(mirror.features[rows]), edges)
    n = len(roles["calibration"])
    truth = torch.from_numpy(y[roles["calibration"]])
    part = Part(torch.arange(n), uniforms_of(mirror, roles["calibration"], settings.seed))
    scores = calibration_scores(logits, part, truth, workspace.settings.conformal.score)
    return scores, float((logits[:n].argmax(dim=1) == truth).double().mean())


def _members(mirror: Mirror, y: NDArray[np.int64], roles: Roles) -> list[Member]:
    return [
        Member(mirror.keys[row], role, int(y[row]))
        for role, rows in roles.items()
        for row in rows.tolist()
    ]


def _digest(state: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(state.items()):
        digest.update(name.encode() + value.numpy().tobytes())
    return digest.hexdigest()
