"""`ringfence outcomes`: what came out of the work on nodes, as a table, CSV or Cypher."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ringfence.jobs.cli.console import print_json, say, table
from ringfence.jobs.cli.options import AsJson, Config


def outcomes(
    config: Config = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all as CSV.")] = False,
    as_cypher: Annotated[
        bool, typer.Option("--cypher", help="Print Cypher that writes classes to the graph.")
    ] = False,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help="With --cypher: class for an outcome, as 'false alarm=retail'; may be repeated."
        ),
    ] = None,
    to_property: Annotated[
        str, typer.Option("--property", help="With --cypher: another property than the class.")
    ] = "",
) -> None:
    """List what people found out; nothing is written to the graph by ringfence itself."""
    from ringfence.connector.errors import ConfigError
    from ringfence.connector.neo4j.queries.worklist_query import outcome_queries
    from ringfence.connector.store import migrate
    from ringfence.connector.store.queries.project import ProjectQueries
    from ringfence.connector.store.worklist.outcomes import read_outcomes
    from ringfence.jobs.config.load import load
    from ringfence.jobs.project.audit_store import open_audit
    from ringfence.jobs.worklist.outcome_table import (
        classes_to_write,
        outcome_row,
        outcomes_csv,
        parse_rules,
    )

    if sum((as_json, as_csv, as_cypher)) > 1 or ((rule or to_property) and not as_cypher):
        raise ConfigError(
            found="several forms at once, or --rule or --property without --cypher",
            needed="one of --json, --csv and --cypher",
            next_step="ringfence outcomes --cypher",
        )
    settings = load(config)
    with open_audit(settings) as store:
        migrate.require_sql(store)
        queries = ProjectQueries(store, settings.project)
        standing = read_outcomes(store, settings.project)
        rules = parse_rules(queries, rule or [])
    if as_csv:
        sys.stdout.writelines(outcomes_csv(standing))
    elif as_cypher:
        mapping = settings.mapping()
        written = classes_to_write(standing, rules)
        property_ = to_property or mapping.class_property
        sys.stdout.writelines(outcome_queries(mapping, property_, written))
    elif as_json:
        print_json([outcome_row(outcome) for outcome in standing])
    elif not standing:
        say("No node is done. Next: ringfence mark KEY done --outcome confirmed")
    else:
        shown = ("node", "outcome", "about", "who", "known_class", "note")
        rows = [outcome_row(outcome) for outcome in standing]
        table(f"{len(rows)} nodes are done", shown, [[row[name] for name in shown] for row in rows])
