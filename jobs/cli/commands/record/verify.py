"""`ringfence verify`: check that everything on record is still what was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.integrity.derivation.findings import Derived
    from ringfence.jobs.integrity.verify import Verification


def verify(
    second_client: Annotated[
        bool,
        typer.Option("--second-client", help="Read the graph through the py2neo client as well."),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Compare blocks of rows by their digests alone; nothing is derived again.",
        ),
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Check that everything on record is still what was decided (exit 4: something is not)."""
    if second_client:
        from ringfence.connector.extras import require_imports

        require_imports("py2neo", "for the second client")
    with open_with_progress(config, "verifying") as (workspace, _):
        from ringfence.jobs.integrity.verify import run_verification

        done = run_verification(workspace, with_py2neo=second_client, quick=quick)
    print_report(done, as_json, print_verification)
    if done.problems:
        raise typer.Exit(ExitCode.ALARM)


def describe_derived(derived: Derived) -> str:
    """Say how many of a kind were derived again, and how many are sealed but can't be.

    >>> from ringfence.jobs.integrity.derivation.findings import Derived
    >>> describe_derived(Derived("levels of runs", 3, {"of older versions": 2}))
    'Derived again: 3 levels of runs; sealed, not derivable: 2 of older versions'
    """
    left = ", ".join(f"{count:,} {why}" for why, count in derived.not_derivable.items())
    counted = f"Derived again: {derived.derived:,} {derived.subject}"
    return f"{counted}; sealed, not derivable: {left}" if left else counted


def print_verification(done: Verification) -> None:
    """Show what was checked and every problem."""
    how = ", by their digests" if done.quick else ""
    say(
        f"Checked {done.entries} chain entries, {done.runs} runs and {done.predictions:,} "
        f"predictions{how}; the graph remembers entry {done.anchored or 'none'}."
    )
    for derived in done.derived:
        say_sentence(describe_derived(derived))
    for problem in done.problems:
        say(f"PROBLEM: {problem}")
    for note in done.notes:
        say_sentence(note)
    if not done.problems:
        say("Everything is as it was decided.")
