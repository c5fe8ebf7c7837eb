"""List length and found share of a list over the promised share of wrong nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.jobs.views.charts.model import Figure, Line, Panel


def list_trade_off(name: str, rows: Sequence[tuple[float, float, float]]) -> Figure:
    """Draw rows of promised share, listed share of all nodes, found share of the right nodes."""
    x = [100 * promised for promised, _, _ in rows]
    panel = Panel(
        "",
        "of the listed nodes so many per cent may be wrong",
        "share",
        (
            Line(x, [share for _, _, share in rows], "right nodes found"),
            Line(x, [listed for _, listed, _ in rows], "of all nodes listed", "warn", "dashes"),
        ),
        y_range=(0.0, 1.005),
        percent=True,
    )
    return Figure(
        "list-trade-off",
        f"What the list {name} finds",
        "Measured on validation nodes, as if they were one run.",
        (panel,),
    )
