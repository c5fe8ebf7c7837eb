"""The table of coverage that `audit`, `status` and `demo` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringfence.connector.records import CoverageRow
from ringfence.jobs.cli.console import say, table

MAX_LISTED_RUNS = 20
MAX_LISTED_NAMES = 40
COVERAGE_COLUMNS = ("run", "evaluated", "known", "covered", "size", "usual band", "verdict")


def print_coverage(
    rows: Sequence[CoverageRow], title: str, totals: Sequence[CoverageRow] | None = None
) -> None:
    """Show coverage rows: per run, the total of each set of terms, then classes and groups.

    `totals` are given where the rows come from SQL: `coverage_rows` has an order that tells them.
    """
    from ringfence.jobs.auditing.coverage import last_totals, without_group

    totals = last_totals(rows) if totals is None else totals
    of_runs = [row for row in rows if row.slice == "run" and row.first_alpha]
    per_run = sorted(of_runs, key=lambda row: row.seq)
    listed = [*per_run[-MAX_LISTED_RUNS:], *totals]
    several = {row.model for row in totals if sum(row.model == t.model for t in totals) > 1}
    table(title, COVERAGE_COLUMNS, [_cells(row, row.model in several) for row in listed])
    if len(per_run) > MAX_LISTED_RUNS:
        say(f"The newest {MAX_LISTED_RUNS} of {len(per_run):,} runs; --json has all.")
    evaluated = listed[-1].evaluated if listed else 0
    _print_slice(rows, "class", "Classes")
    groups = {row.name: row.evaluated for row in _print_slice(rows, "group", "Groups")}
    for sentence in without_group(groups, evaluated):
        say(f"{sentence}.")


def print_verdict(rows: Sequence[CoverageRow]) -> None:
    """Say the newest model's worst verdict, and how its known nodes differ from the others."""
    from ringfence.connector.store.queries.totals import worst_promise, worst_total
    from ringfence.jobs.auditing.coverage import last_totals

    own_promises = [row for row in rows if row.own_promise]
    say_verdict(worst_promise(worst_total(last_totals(rows)), own_promises))


def say_verdict(total: CoverageRow | None) -> None:
    """Say a total's verdict, and how its known nodes differ from the others."""
    for sentence in (total.words, total.bias_words) if total else ():
        if sentence:
            say(sentence[:1].upper() + sentence[1:] + ".")


def _print_slice(rows: Sequence[CoverageRow], slice_: str, title: str) -> list[CoverageRow]:
    """Show the classes or groups of the newest run's terms; return them."""
    of_slice = [row for row in rows if row.slice == slice_ and row.first_alpha]
    if not of_slice:
        return []
    newest = [row for row in of_slice if row.seq == of_slice[-1].seq]
    newest.sort(key=lambda row: row.worst_first)
    whole, newest = newest, newest[:MAX_LISTED_NAMES]
    if any(row.own_promise for row in newest):
        table(
            f"{title}, worst first (each has a promise of its own)",
            (slice_, "may miss", *COVERAGE_COLUMNS[1:]),
            [(row.name, _may_miss(row), *_cells(row)[1:]) for row in newest],
        )
    else:
        table(
            f"{title}, worst first (the promise is for all nodes together)",
            (slice_, *COVERAGE_COLUMNS[1:]),
            [(row.name, *_cells(row)[1:]) for row in newest],
        )
    if len(whole) > len(newest):
        say(f"The worst {len(newest)} of {len(whole):,} {title.lower()}; --json has all.")
    return whole


def _may_miss(row: CoverageRow) -> str:
    return f"{100 * row.alpha:g} %" if row.own_promise else "–"


def _cells(row: CoverageRow, several_terms: bool = False) -> tuple[Any, ...]:
    all_runs = f"all at alpha {row.alpha:g}" if several_terms else "all runs"
    return (
        str(row.seq) if row.slice == "run" else all_runs,
        row.evaluated,
        row.known,
        _percent(row.covered, row.known),
        f"{row.mean_size:.2f}",
        _band(row),
        row.verdict,
    )


def _band(row: CoverageRow) -> str:
    about, most = "" if row.exact else "about ", f"{100 * row.high:.1f}"
    return f"{about}{100 * row.low:.1f}–{most.replace('100.0', '100')} %" if row.known else "–"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
