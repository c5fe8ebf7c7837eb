"""`ringfence verify`: check that everything on record is still what was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.integrity.verify import Verification


def verify(
    second_client: Annotated[
        bool,
        typer.Option("--second-client", help="Read the graph through the py2neo client as well."),
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Check that everything on record is still what was decided (exit 4: something is not)."""
    with open_with_progress(config, "verifying") as (workspace, _):
        from ringfence.jobs.integrity.verify import run_verification

        done = run_verification(workspace, with_py2neo=second_client)
    print_report(done, as_json, print_verification)
    if done.problems:
        raise typer.Exit(ExitCode.ALARM)


def print_verification(done: Verification) -> None:
    """Show what was checked and every problem."""
    say(
        f"Checked {done.entries} chain entries, {done.runs} runs and {done.predictions:,} "
        f"predictions; the graph remembers entry {done.anchored or 'none'}."
    )
    for problem in done.problems:
        say(f"PROBLEM: {problem}")
    if not done.problems:
        say("Everything is as it was decided.")
