"""Charts of a model version: how it was trained, and what a promise to one class costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringfence.jobs.views.charts.downsample import thinned
from ringfence.jobs.views.charts.model import Figure, Line, Panel
from ringfence.models.promise.trade_off import TradeOff


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


def class_trade_off(class_: str, rows: Sequence[TradeOff]) -> Figure:
    """Alert rate and precision of a class over the miss rate, where a promise is possible."""
    possible = [row for row in rows if not row.in_every_set]
    x = [100 * row.alpha for row in possible]
    panel = Panel(
        "",
        f"miss at most so many per cent of {class_}",
        "share",
        (
            Line(x, [row.alert_rate for row in possible], "nodes alerted"),
            Line(x, [row.precision for row in possible], "precision", "warn", "dashes"),
        ),
        y_range=(0.0, 1.005),
        percent=True,
    )
    return Figure(
        "trade-off",
        f"What a promise to {class_} costs",
        "Alerts: nodes whose set holds the class. Precision: share of alerts that are of it.",
        (panel,),
    )
