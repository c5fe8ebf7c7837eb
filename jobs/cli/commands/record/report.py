"""`ringfence report`: write the audit as one HTML file, CSV, JSON or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import print_report, say
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.report.pack import PackFile
    from ringfence.jobs.report.write import ReportFiles


def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "ringfence-report"
    ),
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", help="html, csv, json or parquet; may be repeated."),
    ] = None,
    pack: Annotated[
        Path | None,
        typer.Option("--pack", help="Write one archive for an auditor to this .zip file instead."),
    ] = None,
    from_day: Annotated[
        str | None, typer.Option("--from", help="First day of the period, as 2026-07-01 (UTC).")
    ] = None,
    to_day: Annotated[
        str | None, typer.Option("--to", help="Last day of the period, as 2026-09-30 (UTC).")
    ] = None,
    quarter: Annotated[
        str | None, typer.Option("--quarter", help="A quarter, as 2026Q3, instead of days.")
    ] = None,
    salted_keys: Annotated[
        bool,
        typer.Option(
            "--salted-keys",
            help="With --pack: salted hashes in place of node keys; the salt is a file of its own.",
        ),
    ] = False,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="With --pack: write no signature.")
    ] = False,
    time_stamp: Annotated[
        str | None,
        typer.Option(
            "--time-stamp",
            help="With --pack: address of a time-stamping authority (RFC 3161) that is asked.",
        ),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write the audit as one self-contained HTML file, and as CSV, JSON or Parquet."""
    from ringfence.jobs.config.load import load
    from ringfence.jobs.report.period import parse_period

    period = parse_period(from_day, to_day, quarter)
    if pack is not None:
        from ringfence.jobs.cli.progress import show_progress
        from ringfence.jobs.report.pack import PackRequest, run_pack

        settings = load(config)
        request = PackRequest(period, salted_keys, unsigned, time_stamp)
        with show_progress("packing") as progress:
            done = run_pack(settings, pack, request, progress)
        print_report(done, as_json, print_pack)
        if done.sound is False:
            raise typer.Exit(ExitCode.ALARM)
        return
    from ringfence.jobs.report.write import run_report

    written = run_report(load(config), output, tuple(format_ or ["html"]), period)
    print_report(written, as_json, print_files)


def print_files(done: ReportFiles) -> None:
    """Show which files were written."""
    say(f"Wrote {len(done.files)} file(s), {done.bytes // 1024:,} kB, to {done.folder}")
    for path in done.files:
        say(f"  {path}")


def print_pack(done: PackFile) -> None:
    """Show the archive, its hash and the verification."""
    say(f"Wrote {done.files} files, {done.bytes // 1024:,} kB, to {done.path}")
    say(f"SHA-256 {done.sha256}")
    say(f"{done.runs:,} runs decided {done.period}, {done.predictions:,} predictions.")
    say(done.verification)
    if done.signed_by is None:
        say("It is not signed. For a key to sign packs with: ringfence key new")
    else:
        stamped = "" if done.time_stamp is None else f" and stamped by {done.time_stamp}"
        say(f"Signed with key {done.signed_by}{stamped}.")
    if done.salt_file is not None:
        say(f"The salt of the keys is in {done.salt_file}: hand it over apart, or not at all.")
    say(f"To check it anywhere: unzip -p {done.path} verify_pack.py | python3 - {done.path}")
    say("Begin with index.html: it says where each usual question is answered.")
