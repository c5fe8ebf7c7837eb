"""How coverage looks to a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringfence.jobs.display import say, table

COVERAGE_COLUMNS = ("run", "evaluated", "known", "covered", "usual band", "naive", "verdict")


def as_of(rows: Sequence[dict[str, Any]], moment: str) -> None:
    """Show `ringfence audit --as-of`."""
    if not rows:
        say(f"No run had been decided by {moment}.")
        return
    coverage(rows, f"Coverage as it was known at {moment}")
    verdict(rows)


def verdict(rows: Sequence[dict[str, Any]]) -> None:
    """Say the newest model's verdict, and how its known nodes differ from the others."""
    total = next((row for row in reversed(rows) if row["slice"] == "total"), None)
    for words in (total["words"], total["bias_words"]) if total else ():
        if words:
            say(words[:1].upper() + words[1:] + ".")


def coverage(rows: Sequence[dict[str, Any]], title: str) -> None:
    """Show coverage rows: per run with the newest model's total, then classes and groups."""
    from ringfence.jobs.coverage_rows import without_group

    totals = {row["model"]: row for row in rows if row["slice"] == "total"}
    shown = [row for row in rows if row["slice"] == "run"] + list(totals.values())
    table(title, COVERAGE_COLUMNS, [_coverage_cells(row) for row in shown])
    evaluated = shown[-1]["evaluated"] if shown else 0
    _named(rows, "class", "Classes")
    for words in without_group(_named(rows, "group", "Groups"), evaluated):
        say(f"{words}.")


def _named(rows: Sequence[dict[str, Any]], slice_: str, words: str) -> list[dict[str, Any]]:
    """Show the newest model's classes or groups; return them."""
    own = [row for row in rows if row["slice"] == slice_]
    if not own:
        return []
    newest = [row for row in own if row["model"] == own[-1]["model"]]
    newest.sort(key=lambda row: (row["p_value"], row["coverage"] or 0.0))
    table(
        f"{words}, worst first (the promise is for all nodes together)",
        (slice_, *COVERAGE_COLUMNS[1:]),
        [(row["name"], *_coverage_cells(row)[1:]) for row in newest],
    )
    return newest


def _coverage_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    about = "" if row["exact"] else "about "
    return (
        str(row["seq"]) if row["slice"] == "run" else "all runs",
        row["evaluated"],
        row["known"],
        _percent(row["covered"], row["known"]),
        f"{about}{100 * row['low']:.1f} – {100 * row['high']:.1f} %",
        _percent(row["covered_naive"], row["known"]),
        row["verdict"],
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
