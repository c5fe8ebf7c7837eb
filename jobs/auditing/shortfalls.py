"""Classes and groups that are covered far below what is promised; Today, alarms and metrics agree.

A class or group with a promise of its own falls short where that promise is broken. The others have
no promise: they fall short where their nodes are missed at least `FAR` times as often as all nodes
together may be, and that is no chance, however often it is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ringfence.connector.records import NAMED_SLICES, CoverageRow
from ringfence.models.guarantee.verdict import BROKEN_P

FAR = 2.0
Row = TypeVar("Row", bound=CoverageRow)


def find_shortfalls(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of classes and groups that fall short, the worst first."""
    short = [row for row in rows if _falls_short(row)]
    return sorted(short, key=lambda row: row.worst_first)


def describe_shortfall(row: CoverageRow) -> str:
    """Return what is wrong with a class or group, with the size of its sets.

    Coverage alone would not do: a full set covers everything.
    """
    promised = f"{100 * (1 - row.alpha):g} % are promised"
    whom = "to it" if row.own_promise else "to all nodes together, none to it alone"
    return (
        f"{row.slice} {row.name}: {100 * (row.coverage or 0.0):.1f} % of {row.known:,} known nodes "
        f"are covered by sets of {row.mean_size:.2f} classes on average; {promised} {whom}"
    )


def _falls_short(row: CoverageRow) -> bool:
    if row.slice not in NAMED_SLICES or row.coverage is None or row.unseen == row.known:
        return False
    if row.own_promise:
        return row.verdict == "broken"
    return row.coverage < 1 - FAR * row.alpha and row.anytime_p < BROKEN_P
