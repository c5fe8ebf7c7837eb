"""`ringfence init`: propose a configuration from the live graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import print_report, say, table
from ringfence.jobs.cli.options import AsJson, with_config

if TYPE_CHECKING:
    from ringfence.jobs.setup.init import Proposal

DEFAULT_OUTPUT = Path("ringfence.toml")
CHOICES = ("label", "key", "features", "class_property", "created_at", "time_kind")


def init(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = DEFAULT_OUTPUT,
    uri: Annotated[
        str,
        typer.Option(help="Server to inspect; `embedded` is the zero-install one of this folder."),
    ] = "embedded",
    user: Annotated[str, typer.Option(help="Name to log in with.")] = "neo4j",
    label: Annotated[
        str | None,
        typer.Option(help="Label of the nodes to predict; by default the most plausible one."),
    ] = None,
    project: Annotated[str, typer.Option(help="Name of the project.")] = "default",
    force: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Inspect the live graph and write a filled-in ringfence.toml with the reason of each value."""
    from ringfence.jobs.cli.progress import server_progress, show_progress
    from ringfence.jobs.setup.init import run_init

    with show_progress("inspecting the graph") as report:
        proposal = run_init(
            output, uri, user, label, project, force=force, download=server_progress(report)
        )
    print_report(proposal, as_json, lambda proposal: print_proposal(proposal, output))


def print_proposal(proposal: Proposal, output: Path) -> None:
    """Show the proposed settings with their reasons."""
    choices = [(name, getattr(proposal, name)) for name in CHOICES]
    rows = [(name, str(choice.value), choice.why) for name, choice in choices]
    rows += [
        (f"relationship {type_}", created or "no time", why)
        for type_, created, why in proposal.relationships
    ]
    table(f"Written to {output}", ("setting", "value", "why"), rows)
    if proposal.open_points:
        say(f"Check these in the file first: {', '.join(proposal.open_points)}.")
    config = None if output == DEFAULT_OUTPUT else output
    say(f"Next: {with_config('ringfence doctor', config)}")
