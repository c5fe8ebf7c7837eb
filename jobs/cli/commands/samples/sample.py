"""`ringfence sample`: load the sample graph of payment accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.options import AsJson, Config, with_config

if TYPE_CHECKING:
    from ringfence.jobs.samples.accounts import SampleReport


def sample(
    nodes: Annotated[int, typer.Option(min=100, max=10_000_000, help="How many accounts.")] = 1_000,
    arrival: Annotated[
        str, typer.Option(help="Order in which accounts are exchangeable: `node` or `edge`.")
    ] = "node",
    labelled: Annotated[
        float, typer.Option(min=0, max=1, help="Share of accounts whose kind is known.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the graph.")] = 7,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Load the sample graph of payment accounts in bulk into an empty database."""
    from ringfence.jobs.samples.accounts import run_sample

    with open_with_progress(config, "loading") as (workspace, report):
        done = run_sample(workspace.graph, nodes, arrival, labelled, seed, report)
    steps = (with_config(f"ringfence {verb}", config) for verb in ("migrate", "train", "score"))
    next_step = " && ".join(steps)
    print_report(done, as_json, lambda done: print_sample(done, next_step))


def print_sample(done: SampleReport, next_step: str) -> None:
    """Show what was loaded, and what comes next."""
    say(
        f"Loaded {done.nodes:,} accounts and {done.relationships:,} payments; the kind of "
        f"{done.labelled:,} is known. Label :Account, key id, features, kind, created_at."
    )
    say(f"Next: {next_step}")
