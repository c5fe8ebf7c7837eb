"""`ringfence worklist`: list the nodes that may be of a class, surest first."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ringfence.jobs.cli.console import print_json, say, table
from ringfence.jobs.cli.options import AsJson, Config, with_config


def worklist(
    class_: Annotated[str, typer.Argument(metavar="CLASS", help="Class in the set.")] = "",
    config: Config = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the whole list as CSV.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many nodes.")] = 20,
    min_p: Annotated[str, typer.Option(help="Only p-values above.")] = "",
    max_size: Annotated[str, typer.Option(help="Only sets of at most so many classes.")] = "",
    run: Annotated[str, typer.Option(help="Only nodes of this run.")] = "",
    group: Annotated[str, typer.Option(help="Only nodes of a group, such as region=north.")] = "",
    known: Annotated[str, typer.Option(help="Is the class known: no, yes, any.")] = "no",
    state: Annotated[str, typer.Option(help="open, free, claimed, done, any.")] = "open",
) -> None:
    """List the nodes whose set holds a class, surest first; without a class, the classes."""
    from ringfence.connector.store import migrate
    from ringfence.connector.store.queries.project import ProjectQueries
    from ringfence.connector.store.queries.worklist import read_worklist
    from ringfence.jobs.config.load import load
    from ringfence.jobs.project.audit_store import open_audit
    from ringfence.jobs.worklist.request import filter_of
    from ringfence.jobs.worklist.table import (
        classes_to_choose,
        csv_lines,
        require_class,
        row_of,
    )

    settings = load(config)
    given = {"class": class_, "min_p": min_p, "max_size": max_size, "run": run, "group": group,
             "known": known, "state": state}  # fmt: skip
    wanted = filter_of(given)
    with open_audit(settings) as store:
        migrate.require_sql(store)
        queries = ProjectQueries(store, settings.project)
        if not class_:
            _print_classes(classes_to_choose(queries), as_json, config)
            return
        require_class(queries, class_)
        if as_csv:
            sys.stdout.writelines(csv_lines(queries, wanted))
            return
        rows = [row_of(node, class_) for node in read_worklist(queries, wanted, limit)]
    if as_json:
        print_json(rows)
    elif not rows:
        say("No node is left under these filters.")
    else:
        shown = ("node", "p", "size", "degree", "run", "state", "by")
        title = f"{len(rows)} nodes that may be {class_}, surest first"
        table(title, shown, [[row[name] for name in shown] for row in rows])


def _print_classes(classes: list[str], as_json: bool, config: Config) -> None:
    if as_json:
        print_json(classes)
        return
    say(f"Classes: {', '.join(classes) or 'none yet'}")
    if classes:
        say(f"Next: {with_config('ringfence worklist', config)} CLASS")
