"""`ringfence rescore`: evaluate nodes again, with a reason and without a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.scoring.rescore import RescoreReport


def rescore(
    keys: Annotated[list[str], typer.Argument(help="Keys of the nodes to evaluate again.")],
    reason: Annotated[str, typer.Option(help="Why; the reason goes on record.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate nodes again on purpose: kept apart, without a guarantee, outside the audit."""
    with open_with_progress(config, "evaluating again") as (workspace, report):
        from ringfence.jobs.scoring.rescore import run_rescoring

        done = run_rescoring(workspace, keys, reason, report)
    print_report(done, as_json, print_rescores)


def print_rescores(done: RescoreReport) -> None:
    """Show each node's new set, and what it does not promise."""
    rows = [(key, ", ".join(set_) or "no class conforms") for key, set_ in done.sets.items()]
    table(f"Evaluated again ({done.reason})", ("node", "set"), rows)
    say(done.guarantee[:1].upper() + done.guarantee[1:] + ".")
