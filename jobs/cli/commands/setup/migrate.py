"""`ringfence migrate`: bring both stores to this version."""

from __future__ import annotations

from typing import Annotated

import typer

from ringfence.jobs.cli.console import open_with_progress, print_report, say
from ringfence.jobs.cli.options import AsJson, Config


def migrate(
    config: Config = None,
    new_database: Annotated[
        bool,
        typer.Option(
            "--new-database",
            help="Accept that the project's graph is now in another database, as after a restore.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the SQL store and the graph to this version; running it twice is harmless."""
    with open_with_progress(config, "migrating") as (workspace, _):
        from ringfence.jobs.setup.migrate import run_migrations

        done = run_migrations(workspace, new_database=new_database)
    print_report({"done": done}, as_json, print_migrations)


def print_migrations(report: dict[str, list[str]]) -> None:
    """Show what was migrated, a line each."""
    for line in report["done"] or ["Both stores are up to date; nothing to do."]:
        say(line)
