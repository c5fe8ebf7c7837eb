"""`ringfence doctor`: check the configuration against the live graph and both stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from ringfence.jobs.cli.console import print_report, say, table
from ringfence.jobs.cli.exit_codes import ExitCode
from ringfence.jobs.cli.options import AsJson, Config
from ringfence.jobs.cli.pasteable import commands_in

if TYPE_CHECKING:
    from ringfence.jobs.setup.finding import Finding

MARKS = {"ok": "ok", "warning": "WARNING", "error": "ERROR"}


def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Check the configuration against the live graph and both stores; list findings with fixes."""
    from ringfence.jobs.cli.progress import server_progress, show_progress
    from ringfence.jobs.setup.doctor import run_doctor

    with show_progress("checking") as report:
        findings = run_doctor(config, server_progress(report))
    print_report(findings, as_json, print_findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(ExitCode.ERROR)


def print_findings(findings: Sequence[Finding]) -> None:
    """Show every finding with its fix; its commands again below, unbroken by columns."""
    rows = [(MARKS[finding.level], finding.text, finding.fix) for finding in findings]
    table("Findings", ("", "what", "fix"), rows)
    commands = [command for finding in findings for command in commands_in(finding.fix)]
    for command in dict.fromkeys(commands):
        say(f"To paste: {command}")
