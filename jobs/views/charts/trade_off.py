"""Chart of what a promise to one class costs: alerts and precision over the share missed."""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.jobs.views.charts.model import Figure, Line, Panel
from ringfence.models.promise.trade_off import TradeOff


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
