"""`ringfence init`: propose a configuration from the live graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.connector.progress import no_progress
from ringfence.jobs.cli.console import print_report, say, table
from ringfence.jobs.cli.options import AsJson, with_config

if TYPE_CHECKING:
    from ringfence.jobs.setup.init import Proposal

DEFAULT_OUTPUT = Path("ringfence.toml")
MAX_LEFT_OUT_SHOWN = 12


def init(
    output: Annotated[
        Path, typer.Option("--output", "-o", "--config", "-c", help="File to write.")
    ] = DEFAULT_OUTPUT,
    uri: Annotated[
        str | None,
        typer.Option(
            help="Server to inspect; `embedded`, the default, is the zero-install one of this "
            "folder. RINGFENCE_NEO4J_URI wins; NEO4J_URI is the default where it is set."
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Name to log in with; by default neo4j.")] = None,
    database: Annotated[
        str | None, typer.Option(help="Database to inspect; by default the user's home database.")
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(help="Credentials file as Neo4j Aura offers it; the new file names it."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Label of the nodes to predict; by default the most plausible one."),
    ] = None,
    class_property: Annotated[
        str | None,
        typer.Option(help="Property with the known class; by default the likeliest one."),
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Ask which label and class are meant.")
    ] = False,
    project: Annotated[str, typer.Option(help="Name of the project.")] = "default",
    force: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Inspect the live graph and write a filled-in ringfence.toml with the reason of each value."""
    from ringfence.jobs.cli.progress import server_progress, show_progress
    from ringfence.jobs.setup.init import run_init

    # a bar would write over the questions
    bar = nullcontext(no_progress) if interactive else show_progress("inspecting the graph")
    with bar as report:
        proposal = run_init(
            output,
            uri,
            user,
            label,
            project,
            force=force,
            database=database,
            credentials=credentials,
            class_property=class_property,
            ask=ask_person if interactive else None,
            download=server_progress(report),
        )
    print_report(proposal, as_json, lambda proposal: print_proposal(proposal, output))


def ask_person(question: str, answers: Sequence[str], proposed: str) -> str:
    """Ask on the terminal until one of the answers comes; standard output is for the result."""
    while True:
        typer.echo(f"{question} ({', '.join(answers)}) [{proposed}]: ", nl=False, err=True)
        try:
            answer = input().strip() or proposed
        except (EOFError, KeyboardInterrupt):
            raise typer.Abort from None
        if answer in answers:
            return answer
        typer.echo(f"{answer!r} is not one of the answers", err=True)


def _rows(proposal: Proposal) -> Iterator[tuple[str, str, str]]:
    """Yield setting, value and reason of all that is proposed."""
    for name in ("label", "key", "class_property", "arrival"):
        choice = getattr(proposal, name)
        value = choice.value or "keys not yet known"
        yield name, str(value), choice.why if choice.sure else f"CHECK: {choice.why}"
    if proposal.features:
        yield "features", str(proposal.features.value), proposal.features.why
    else:
        for column in proposal.columns:
            yield f"column {column.name}", column.kind, column.why
    for node in proposal.context:
        columns = ", ".join(column.name for column in node.columns) or "no columns"
        yield f"context {node.label}", f"key {node.key.value}", f"{node.count} nodes; {columns}"
    for relation in proposal.relations:
        ends = f"{relation.source} to {relation.target}"
        yield (
            f"relationship {relation.type}",
            relation.created_at or "no time",
            f"{ends}; {relation.why}",
        )


def print_proposal(proposal: Proposal, output: Path) -> None:
    """Show the proposed settings with their reasons."""
    table(f"Written to {output}", ("setting", "value", "why"), list(_rows(proposal)))
    left = proposal.left_out[:MAX_LEFT_OUT_SHOWN]
    if left:
        table("Left out", ("what", "why"), [(column.name, column.why) for column in left])
    if len(proposal.left_out) > len(left):
        say(f"{len(proposal.left_out) - len(left)} more are named at the end of the file.")
    if proposal.open_points:
        say(f"Check these in the file first: {', '.join(proposal.open_points)}.")
    config = None if output == DEFAULT_OUTPUT else output
    steps = (with_config(f"ringfence {verb}", config) for verb in ("migrate", "doctor"))
    say(f"Next: {', then: '.join(steps)}")
