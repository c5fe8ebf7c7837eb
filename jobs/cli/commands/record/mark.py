"""`ringfence mark`: claim a node of the worklist, add a note, or close it."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from ringfence.jobs.cli.console import print_report, say
from ringfence.jobs.cli.options import AsJson, Config


def mark(
    key: Annotated[str, typer.Argument(help="Key of an evaluated node.")],
    action: Annotated[str, typer.Argument(help="claim, release, note, done or reopen.")],
    note: Annotated[str, typer.Option(help="What to remember about it.")] = "",
    who: Annotated[str, typer.Option(help="Who does it; else the name of your account.")] = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Mark a node as a person's work; it stands in the audit chain and in no guarantee."""
    from ringfence.connector.keys import typed_candidates
    from ringfence.connector.store import migrate
    from ringfence.connector.store.queries.nodes import find_prediction
    from ringfence.connector.store.queries.project import ProjectQueries
    from ringfence.connector.store.worklist.marks import record_mark
    from ringfence.jobs.config.load import load
    from ringfence.jobs.project.audit_store import key_source, open_audit

    settings = load(config)
    with open_audit(settings) as store:
        migrate.require_sql(store)
        prediction = find_prediction(ProjectQueries(store, settings.project), typed_candidates(key))
        typed_key = key if prediction is None else prediction.node_key
        source = key_source(settings)
        made = record_mark(
            store, settings.project, source, typed_key, who or getpass.getuser(), action, note
        )
    print_report(made, as_json, lambda mark_: say(f"{mark_.who}: {mark_.action} of node {key}"))
