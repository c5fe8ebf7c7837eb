"""`ringfence audit`: measure the coverage of nodes whose class became known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.coverage_table import print_coverage, print_verdict
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.connector.records import CoverageRow
    from ringfence.jobs.auditing.audit import AuditReport


def audit(
    as_of: Annotated[
        str | None,
        typer.Option(
            help="Only recompute coverage as it was known at this ISO time; nothing is written."
        ),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Take in classes that became known and say whether the promise was kept (exit 4: alarm)."""
    if as_of is not None:
        from ringfence.jobs.auditing.audit import coverage_as_of
        from ringfence.jobs.config.load import load

        rows = coverage_as_of(load(config), as_of)
        print_report(rows, as_json, lambda rows: print_as_of(rows, as_of))
        return
    with open_with_progress(config, "auditing") as (workspace, report):
        from ringfence.jobs.auditing.audit import run_audit

        done = run_audit(workspace, report)
    print_report(done, as_json, print_audit)
    if done.alarm:
        raise typer.Exit(ExitCode.ALARM)


def print_audit(done: AuditReport, title: str = "Coverage") -> None:
    """Show coverage, the verdict, and alarms that fire or are about to."""
    print_coverage(done.rows, title)
    print_verdict(done.rows)
    if done.changed:
        say(f"{done.changed} classes have changed since they were noticed; both values are kept.")
    if done.corrected:
        say(
            f"{done.corrected} calibration nodes have another class than was counted so far, or "
            "none; the next run counts with what the graph says."
        )
    for alarm in done.alarms:
        if alarm.state in {"firing", "pending"}:
            say(f"Alarm {alarm.rule} is {alarm.state}: {alarm.words}.")


def print_as_of(rows: Sequence[CoverageRow], moment: str) -> None:
    """Show coverage as it was known at an earlier time."""
    if not rows:
        say(f"No run had been decided by {moment}.")
        return
    print_coverage(rows, f"Coverage as it was known at {moment}")
    print_verdict(rows)
