"""`ringfence worklist`: list the nodes that may be of a class, surest first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import print_json, say, say_sentence, table
from ringfence.jobs.cli.options import AsJson, Config, with_config

if TYPE_CHECKING:
    from ringfence.connector.store.queries.project import ProjectQueries


def worklist(
    class_: Annotated[str, typer.Argument(metavar="CLASS", help="Class in the set.")] = "",
    config: Config = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the whole list as CSV.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many nodes.")] = 20,
    min_p: Annotated[str, typer.Option(help="Only p-values above.")] = "",
    max_size: Annotated[str, typer.Option(help="Only sets of at most so many classes.")] = "",
    run: Annotated[str, typer.Option(help="Only nodes of this run.")] = "",
    list_: Annotated[
        str, typer.Option("--list", help="Only nodes on this list; open: on none.")
    ] = "",
    key: Annotated[str, typer.Option(help="Only keys that begin so.")] = "",
    group: Annotated[str, typer.Option(help="Only nodes of a group, such as region=north.")] = "",
    known: Annotated[str, typer.Option(help="Is the class known: no, yes, any.")] = "no",
    state: Annotated[
        str, typer.Option(help="open, free, claimed, done, an outcome, or any.")
    ] = "open",
    by: Annotated[str, typer.Option(help="Only nodes that this person has.")] = "",
    sample: Annotated[
        bool, typer.Option("--sample", help="The audit sample: nodes whose class to find out.")
    ] = False,
) -> None:
    """List the nodes whose set holds a class, surest first; without a class, the classes."""
    from ringfence.connector.store import migrate
    from ringfence.connector.store.queries.project import ProjectQueries
    from ringfence.connector.store.queries.worklist import read_worklist
    from ringfence.jobs.config.load import load
    from ringfence.jobs.project.audit_store import open_audit
    from ringfence.jobs.worklist.lead import describe_listed
    from ringfence.jobs.worklist.list_choice import choose_list
    from ringfence.jobs.worklist.request import filter_of
    from ringfence.jobs.worklist.table import (
        classes_to_choose,
        csv_lines,
        row_of,
    )

    settings = load(config)
    given = {"class": class_, "min_p": min_p, "max_size": max_size, "run": run, "group": group,
             "list": list_, "key": key, "known": known, "state": state, "by": by}  # fmt: skip
    wanted = filter_of(given)
    with open_audit(settings) as store:
        migrate.require_sql(store)
        queries = ProjectQueries(store, settings.project)
        if sample:
            _require_sample_filters(given)
            _print_sample(queries, given, limit, as_json=as_json, as_csv=as_csv)
            return
        if not class_ and not list_:
            _print_classes(classes_to_choose(queries), as_json, config)
            return
        choice = choose_list(queries, wanted)
        wanted = choice.wanted
        if as_csv:
            sys.stdout.writelines(csv_lines(queries, wanted))
            return
        rows = [row_of(node, wanted.class_) for node in read_worklist(queries, wanted, limit)]
        promises = describe_listed(queries, choice) if choice.is_list else []
    if as_json:
        print_json(rows)
    elif not rows:
        say("No node is left under these filters.")
    else:
        for words in promises:
            say_sentence(words)
        shown = ("node", "p", "size", "degree", "run", "state", "by", "outcome")
        about = f"that may be {wanted.class_}" if not list_ else f"of list {list_}"
        title = f"{len(rows)} nodes {about}, surest first"
        table(title, shown, [[row[name] for name in shown] for row in rows])


def _print_classes(classes: list[str], as_json: bool, config: Config) -> None:
    if as_json:
        print_json(classes)
        return
    say(f"Classes: {', '.join(classes) or 'none yet'}")
    if classes:
        say(f"Next: {with_config('ringfence worklist', config)} CLASS")


def _require_sample_filters(given: Mapping[str, str]) -> None:
    """Refuse filters by what the model says: the sample is to be labelled without knowing it."""
    from ringfence.connector.errors import ConfigError
    from ringfence.jobs.worklist.sample_table import SAMPLE_NAMES

    others = [name for name, value in given.items() if value and name not in SAMPLE_NAMES]
    if others:
        raise ConfigError(
            found=f"--sample with {', '.join(others)}",
            needed=f"the sample as it was drawn, by {', '.join(SAMPLE_NAMES)} alone",
            next_step="ringfence worklist --sample",
        )


def _print_sample(
    queries: ProjectQueries, given: Mapping[str, str], limit: int, *, as_json: bool, as_csv: bool
) -> None:
    from ringfence.connector.store.queries.sample import read_sample
    from ringfence.jobs.worklist.sample_table import (
        SAMPLE_COLUMNS,
        sample_csv,
        sample_filter,
        sample_row,
    )

    wanted = sample_filter(given)
    if as_csv:
        sys.stdout.writelines(sample_csv(queries, wanted))
        return
    rows = [sample_row(node) for node in read_sample(queries, wanted, limit)]
    if as_json:
        print_json(rows)
    elif not rows:
        say("No node of the audit sample is left under these filters.")
    else:
        title = f"Please find out the class of these {len(rows)} nodes of the audit sample"
        table(title, SAMPLE_COLUMNS, [[row[name] for name in SAMPLE_COLUMNS] for row in rows])
