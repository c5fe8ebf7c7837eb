"""`ringfence partition`: what dividing the graph among workers would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.engines.division import Division


def partition(
    parts: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="How many workers; [engine] partitions without it."),
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Divide anew instead of showing what is on record.")
    ] = False,
    write: Annotated[
        bool,
        typer.Option("--write", help="Put the division on record; the next run moves rows to it."),
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show cut, balance, bytes and memory per worker, and whether one machine is cheaper."""
    with open_with_progress(config, "dividing") as (workspace, _report):
        from ringfence.jobs.engines.division import preview_division

        many = workspace.settings.engine.partitions if parts is None else parts
        if write:
            with workspace.lease():  # no run may be using the division that is on record
                division = preview_division(workspace, many, anew=anew, write=True)
        else:
            division = preview_division(workspace, many, anew=anew, write=False)
    print_report(division, as_json, print_division)


def print_division(division: Division) -> None:
    """Show a row per worker, and which of the two ways needs less."""
    from ringfence.jobs.project.memory import format_bytes

    state = "on record" if division.kept or division.written else "a preview, not on record"
    table(
        f"{division.nodes:,} rows among {division.parts} workers ({state})",
        ("worker", "rows", "list entries", "rows of others", "received", "memory", "disk"),
        [
            (
                number,
                f"{worker.rows:,}",
                f"{worker.entries:,}",
                f"{worker.halo:,}",
                format_bytes(worker.received),
                format_bytes(worker.memory),
                format_bytes(worker.disk),
            )
            for number, worker in enumerate(division.workers)
        ],
    )
    say(
        f"{division.cut:.1%} of the list entries cross a border; the largest worker has "
        f"{division.balance:.2f} times an equal part."
    )
    need, free = format_bytes(division.one_machine), format_bytes(division.free)
    if division.one_is_cheaper:
        say(
            f"One machine is cheaper: the whole graph needs {need} of memory, and {free} are free "
            'here. [engine] kind = "local" computes the same sets in less time.'
        )
    else:
        say(
            f"The whole graph needs {need} of memory, and {free} are free here: "
            '[engine] kind = "ray" with these workers gives the same sets.'
        )
