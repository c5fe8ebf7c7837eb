"""The chart of a training: losses by epoch, and the epoch whose weights were kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringfence.jobs.views.charts.downsample import thinned
from ringfence.jobs.views.charts.model import Figure, Line, Panel


def learning_curves(manifest: Mapping[str, Any]) -> Figure:
    """Losses on train and validation nodes by epoch, from a model's manifest."""
    curves = manifest.get("curves") or {}
    train, validation = curves.get("train_loss", ()), curves.get("validation_loss", ())
    epochs = thinned(list(range(min(len(train), len(validation)))))
    lines = (
        Line(epochs, [train[epoch] for epoch in epochs], "train loss", "muted"),
        Line(epochs, [validation[epoch] for epoch in epochs], "validation loss"),
    )
    best = manifest.get("best_epoch")
    kept = "" if best is None else f" The weights of epoch {best:,} were kept."
    return Figure(
        "learning",
        "Learning curves",
        "Mean log loss by epoch; training stops when that of validation nodes no longer falls."
        f"{kept}",
        (Panel("", "epoch", "log loss", lines),),
    )
