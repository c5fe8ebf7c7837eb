"""`ringfence verify`: check that everything on record is still what was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.connector.errors import ConfigError
from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.integrity.checkpoint.compared_rows import SinceCheckpoint
    from ringfence.jobs.integrity.derivation.findings import Derived
    from ringfence.jobs.integrity.verify import Verification

_PASSED = {
    "full": "Everything is as it was decided.",
    "quick": "Everything is as it was decided.",
    "since": "What was compared is as it was decided; ringfence verify --full compares the rest.",
}


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
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Compare everything, not only what came since the newest checkpoint and a sample "
            "of the rest; goes on where it was interrupted.",
        ),
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Check that everything on record is still what was decided (exit 4: something is not)."""
    if second_client:
        from ringfence.connector.extras import require_imports

        require_imports("py2neo", "for the second client")
    if full and quick:
        raise ConfigError(
            found="--full and --quick",
            needed="one of the two: everything, or blocks of rows by their digests alone",
            next_step="ringfence verify --full",
        )
    with open_with_progress(config, "verifying") as (workspace, progress):
        from ringfence.jobs.integrity.checkpoint.seal import verify_and_seal
        from ringfence.jobs.integrity.verify import run_verification

        done = (
            run_verification(workspace, with_py2neo=second_client, quick=True)
            if quick
            else verify_and_seal(workspace, progress, with_py2neo=second_client, full=full)
        )
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


def describe_since(since: SinceCheckpoint) -> str:
    """Say what was compared whole since a checkpoint, and what was drawn of older runs.

    >>> from ringfence.jobs.integrity.checkpoint.compared_rows import SinceCheckpoint
    >>> said = describe_since(SinceCheckpoint(40, 1, 500, 2, 10, 900, {1: 0.2, 10: 1.0}))
    >>> print(said.replace("; ", ";\\n"))  # doctest: +NORMALIZE_WHITESPACE
    since the checkpoint of entry 40: 1 runs with 500 predictions, all compared. Before it: 2 of 10
    runs with 900 predictions drawn;
    an edit is noticed with chance 20 % in 1 older run, 100 % in 10
    """
    from ringfence.jobs.integrity.checkpoint.draw import describe_chances

    said = (
        f"since the checkpoint of entry {since.entry}: {since.runs} runs with "
        f"{since.predictions:,} predictions, all compared"
    )
    if not since.of:
        return said
    drawn = (
        f"{said}. Before it: {since.drawn:,} of {since.of:,} runs with "
        f"{since.drawn_predictions:,} predictions drawn"
    )
    return f"{drawn}; {describe_chances(since.chances)}"


def print_verification(done: Verification) -> None:
    """Show what was checked and every problem."""
    how = {"quick": ", by their digests", "since": " in part"}.get(done.kind, "")
    say(
        f"Checked {done.entries} chain entries, {done.runs} runs and {done.predictions:,} "
        f"predictions{how}; the graph remembers entry {done.anchored or 'none'}."
    )
    if done.since is not None:
        say_sentence(describe_since(done.since))
    if done.why_full:
        say_sentence(f"everything was compared: {done.why_full}")
    if done.resumed:
        say_sentence(f"{done.resumed} runs were compared before an interruption, and not again")
    for derived in done.derived:
        say_sentence(describe_derived(derived))
    for problem in done.problems:
        say(f"PROBLEM: {problem}")
    for note in done.notes:
        say_sentence(note)
    if not done.problems:
        say(_PASSED[done.kind])
    if done.sealed is not None:
        say(f"Checkpoint sealed as entry {done.sealed} of the chain.")
