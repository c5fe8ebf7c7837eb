"""`ringfence reconcile`: find and repair what graph and stores disagree on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, table
from ringfence.jobs.cli.options import AsJson, Config, with_config

if TYPE_CHECKING:
    from ringfence.jobs.integrity.reconcile import ReconcileReport

EXAMPLES_SHOWN = 5


def reconcile(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Repair the differences; without it they are only listed."),
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Find missed, deleted and damaged nodes, relationships and sets; list or repair them."""
    with open_with_progress(config, "comparing") as (workspace, report):
        from ringfence.jobs.integrity.reconcile import run_reconcile

        done = run_reconcile(workspace, repair=repair, progress=report)
    next_step = with_config("ringfence reconcile --repair", config)
    print_report(done, as_json, lambda done: print_reconciliation(done, next_step))


def print_reconciliation(done: ReconcileReport, next_step: str) -> None:
    """Show the differences by kind with some examples, and how to repair them."""
    if done.clean:
        say("Graph, audit store and mirror agree; nothing to repair.")
        return
    change = done.mirror
    rows = [
        ("runs decided but not in the graph", len(done.finished_runs)),
        ("nodes that were missed", change.missed),
        ("nodes that were deleted", change.deleted),
        ("nodes whose features or class changed", change.changed),
        ("calibration nodes whose class changed", done.corrected),
        ("relationships that were missed", change.edges_missed),
        ("relationships that were deleted", change.edges_deleted),
        *((f"sets: {kind}", count) for kind, count in done.projections.items()),
    ]
    table("Differences", ("what", "count"), [row for row in rows if row[1]])
    for difference in done.examples[:EXAMPLES_SHOWN]:
        say(f"  {difference.kind}: {difference.node_key} (run {difference.seq})")
    say("Repaired." if done.repaired else f"Nothing was changed. Next: {next_step}")
