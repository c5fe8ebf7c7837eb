"""`ringfence query`: run a reading Cypher query and print its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say, table
from ringfence.jobs.cli.options import AsJson, Config


def query(
    cypher: Annotated[str, typer.Argument(help="A reading Cypher query.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Run a reading Cypher query on the configured graph and print its rows."""
    with open_with_progress(config, "querying") as (workspace, _):
        rows = [row.data() for row in workspace.graph.read(cypher)]
    print_report(rows, as_json, print_rows)


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Show the rows as a table."""
    if not rows:
        say("No rows.")
        return
    table(f"{len(rows)} rows", list(rows[0]), [list(row.values()) for row in rows])
