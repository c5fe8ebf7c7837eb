"""`ringfence prune`: remove the details of runs older than [audit] keep_days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.options import AsJson, Config, with_config

if TYPE_CHECKING:
    from ringfence.jobs.retention.prune import PruneReport

WAITS = {
    "class unknown": "have nodes whose class may still become known ([audit] keep_open_days)",
    "not audited": "have classes that no audit has counted yet (ringfence audit)",
    "not in the graph": "are not in the graph yet (ringfence score finishes them)",
}


def prune(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
    keep_days: Annotated[
        float | None, typer.Option(min=0, help="A period in place of the configured one.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Remove scores, excluded p-values and worklist rows of old runs; sets and coverage stay."""
    with open_with_progress(config, "looking for old runs") as (workspace, report):
        from ringfence.jobs.retention.prune import run_prune

        done = run_prune(workspace, report, dry_run=dry_run, keep_days=keep_days)
    next_step = with_config("ringfence prune", config)
    print_report(done, as_json, lambda done: print_removal(done, next_step))


def print_removal(done: PruneReport, next_step: str) -> None:
    """Show what was or would be removed, and what stays for which reason."""
    from ringfence.connector.times import format_time

    if done.before_ns is None:
        say("Nothing is removed: [audit] keep_days is 0, so everything is kept.")
        return
    old = f"decided before {format_time(done.before_ns)} ({done.keep_days:g} days)"
    if not done.runs:
        say(f"No run {old} has details to remove.")
    elif done.dry_run:
        say(f"Details of {done.nodes:,} nodes of {len(done.runs):,} runs {old} would be removed.")
        say(f"Nothing was changed. Next: {next_step}")
    else:
        say(f"Removed details of {done.nodes:,} nodes of {len(done.runs):,} runs {old}:")
        say(
            f"{done.entries:,} rows of the worklist, p-values of {done.shadow_sets:,} shadow sets; "
            f"{done.freed:,} characters of text in all."
        )
        say("Sets, classes, coverage, the chain and the graph are as they were.")
        if done.left:
            say(f"{done.left:,} nodes are left: another process took over. Next: {next_step}")
    for reason, runs in (done.waiting or {}).items():
        say(f"{runs:,} old runs stay: they {WAITS[reason]}.")
