"""`ringfence query`: run a reading Cypher query and print its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ringfence.jobs.cli.console import open_with_progress, print_json, say, table
from ringfence.jobs.cli.options import AsJson, Config

FIRST_WITH_COMMA = 1_000


def query(
    cypher: Annotated[str, typer.Argument(help="A reading Cypher query.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Run a reading Cypher query on the configured graph and print its rows."""
    from ringfence.connector.neo4j.reading_query import run_reading_query

    with open_with_progress(config, "querying") as (workspace, _):
        rows = run_reading_query(workspace.graph, cypher)
    if as_json:
        print_json([row.data() for row in rows])
    else:
        print_rows([dict(zip(row.keys(), row.values(), strict=True)) for row in rows])


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Show the rows as a table."""
    from ringfence.connector.neo4j.display import display

    if not rows:
        say("No rows.")
        return
    cells = [[_as_it_is(display(value)) for value in row.values()] for row in rows]
    table(f"{len(rows)} rows", list(rows[0]), cells)


def _as_it_is(value: Any) -> Any:
    """A large number may be a key: as plain digits it can be pasted into the next query."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number and abs(value) >= FIRST_WITH_COMMA else value
