"""`ringfence triage`: the nodes of a run in three piles, with what each list promises."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.console import print_json, say, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.auditing.list_audit import ListAudit
    from ringfence.jobs.worklist.triage import Triage, TriageNode


def triage(
    config: Config = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all nodes as CSV.")] = False,
    run: Annotated[int | None, typer.Option(min=1, help="Another run than the last.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Nodes shown per pile.")] = 10,
) -> None:
    """Show whom to investigate, whom to clear and who stays open."""
    from ringfence.connector.store import migrate
    from ringfence.connector.store.queries.project import ProjectQueries
    from ringfence.jobs.auditing.list_audit import audit_lists
    from ringfence.jobs.config.load import load
    from ringfence.jobs.project.audit_store import open_audit
    from ringfence.jobs.worklist.triage import read_triage, triage_csv

    settings = load(config)
    with open_audit(settings) as store:
        migrate.require_sql(store)
        piles = read_triage(ProjectQueries(store, settings.project), run)
        audits = audit_lists(store, settings.project)
    if as_csv:
        sys.stdout.writelines(triage_csv(piles.nodes))
        return
    if as_json:
        print_json({**piles.as_json(), "audit": [row.as_json() for row in audits]})
        return
    print_triage(piles, audits, limit)


def print_triage(piles: Triage, audits: Sequence[ListAudit], limit: int) -> None:
    """Show the piles, whose lists are cut after so many nodes, and what the lists kept."""
    from ringfence.jobs.worklist.triage import KINDS, OPEN

    for facts in piles.run.lists:
        say(f"{facts.words[:1].upper()}{facts.words[1:]}.")
    for pile in KINDS:
        nodes = [node for node in piles.nodes if node.pile == pile]
        title = f"{pile}: {len(nodes):,} nodes of run {piles.run.seq}"
        if pile == OPEN:
            say(f"{title} are on no list")
            continue
        if not nodes:
            say(title)
            continue
        cut = f", the surest {limit}" if len(nodes) > limit else ""
        columns = ("list", "node", "listed from", "set", "known class")
        table(f"{title}{cut}", columns, [_cells(node) for node in nodes[:limit]])
    if piles.on_both:
        say(
            f"{piles.on_both:,} of those to investigate are on a list that clears too; they count "
            "in both promises."
        )
    for row in audits:
        if row.slice == "total":
            say(f"{row.words[:1].upper()}{row.words[1:]}.")


def _cells(node: TriageNode) -> list[str]:
    """A node's row; "listed from" is the smallest promised share at which it would be listed."""
    row = node.as_row()
    share = f"{100 * (node.share or 0.0):.2g} %"
    return [node.list_, str(row["node"]), share, str(row["set"]) or "–", node.label or ""]
