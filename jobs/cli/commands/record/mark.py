"""`ringfence mark`: claim, assign or note a node of the worklist, or say what came out."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import print_report, say
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.connector.store.worklist.marks import Mark


def mark(
    key: Annotated[str, typer.Argument(help="Key of an evaluated node.")],
    action: Annotated[str, typer.Argument(help="claim, release, note, done or reopen.")],
    note: Annotated[str, typer.Option(help="What to remember about it.")] = "",
    who: Annotated[str, typer.Option(help="Who does it; else the name of your account.")] = "",
    outcome: Annotated[
        str, typer.Option(help="With done: confirmed, false-alarm or undecided.")
    ] = "",
    class_: Annotated[
        str, typer.Option("--class", help="Class that the outcome is about, where open.")
    ] = "",
    assign_to: Annotated[str, typer.Option(help="With claim: who else shall look at it.")] = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Mark a node as a person's work; it stands in the audit chain and in no guarantee."""
    from ringfence.connector.keys import typed_candidates
    from ringfence.connector.store import migrate
    from ringfence.connector.store.queries.nodes import find_prediction
    from ringfence.connector.store.queries.project import ProjectQueries
    from ringfence.connector.store.worklist.marks import outcome_of, record_mark
    from ringfence.jobs.config.load import load
    from ringfence.jobs.project.audit_store import key_source, open_audit

    settings = load(config)
    with open_audit(settings) as store:
        migrate.require_sql(store)
        prediction = find_prediction(ProjectQueries(store, settings.project), typed_candidates(key))
        typed_key = key if prediction is None else prediction.node_key
        source = key_source(settings)
        made = record_mark(
            store, settings.project, source, typed_key, who or getpass.getuser(), action, note,
            outcome=outcome_of(outcome) or None, about=class_ or None, assignee=assign_to or None,
        )  # fmt: skip
    print_report(made, as_json, lambda mark_: say(f"{describe_mark(mark_)} of node {key}"))


def describe_mark(made: Mark) -> str:
    """Say who did what, with the outcome or the assignee."""
    said = f"{made.who}: {made.action}"
    if made.outcome is not None:
        about = "" if made.about is None else f" as {made.about}"
        said += f" ({made.outcome}{about})"
    return said if made.assignee is None else f"{said} for {made.assignee}"
