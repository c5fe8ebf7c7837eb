"""`ringfence rollback`: take the newest promotion back, with a reason."""

from __future__ import annotations

from typing import Annotated

import typer

from ringfence.jobs.cli.commands.model.promote import print_promotion
from ringfence.jobs.cli.console import open_with_progress, print_report
from ringfence.jobs.cli.options import AsJson, Config


def rollback(
    reason: Annotated[str, typer.Option(help="Why; the reason goes on record.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Take the newest promotion back: the version before it is in use again, with its promise."""
    with open_with_progress(config, "rolling back") as (workspace, report):
        from ringfence.jobs.lifecycle.promotion import run_rollback

        done = run_rollback(workspace, reason, report)
    print_report(done, as_json, print_promotion)
