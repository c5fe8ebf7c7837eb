"""`ringfence promote`: take a model version into use, with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.lifecycle.promotion import PromotionReport


def promote(
    version: Annotated[str, typer.Argument(help="A version, or how its name begins.")],
    reason: Annotated[str, typer.Option(help="Why; the reason goes on record.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Take a model version into use: the next run evaluates with it, by its own promise."""
    with open_with_progress(config, "promoting") as (workspace, report):
        from ringfence.jobs.lifecycle.promotion import run_promotion

        done = run_promotion(workspace, version, reason, report)
    print_report(done, as_json, print_promotion)


def print_promotion(done: PromotionReport) -> None:
    """Show which version is in use, in place of which, and in what the two differ."""
    if not done.changed:
        say(f"Version {done.version} was in use already ({done.how}: {done.reason}).")
        return
    say(f"Version {done.version} is in use in place of {done.was} ({done.how}: {done.reason}).")
    for difference in done.differences:
        say(f"Changed: {difference}.")
    if done.corrected:
        say(f"{done.corrected:,} of its calibration nodes have another class than at its training.")
    if done.tracking:
        say(f"{done.tracking}.")
    say("Sets that were given stay as they are; no node is evaluated a second time.")
