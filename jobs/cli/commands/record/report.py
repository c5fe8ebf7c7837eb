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
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write the audit as one self-contained HTML file, and as CSV, JSON or Parquet."""
    from ringfence.jobs.config.load import load

    if pack is not None:
        from ringfence.jobs.report.pack import run_pack

        done = run_pack(load(config), pack)
        print_report(done, as_json, print_pack)
        if done.sound is False:
            raise typer.Exit(ExitCode.ALARM)
        return
    from ringfence.jobs.report.write import run_report

    written = run_report(load(config), output, tuple(format_ or ["html"]))
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
    say(done.verification)
    say("Begin with index.html: it says where each usual question is answered.")
