"""A comparison on the holdout as a table: a row per version and baseline, then what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.jobs.cli.console import say_sentence, table

if TYPE_CHECKING:
    from ringfence.jobs.lifecycle.comparison import HoldoutReport


def print_comparison(report: HoldoutReport) -> None:
    """Show metrics with their intervals, and which differences are beyond them."""
    title = f"On {report.nodes:,} nodes of the holdout (95 % intervals)"
    table(title, report.columns, report.rows)
    for sentence in report.sentences:
        say_sentence(sentence)
