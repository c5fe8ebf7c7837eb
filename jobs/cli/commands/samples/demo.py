"""`ringfence demo`: run everything once on a sample graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringfence.jobs.cli.commands.runs.audit import print_audit
from ringfence.jobs.cli.commands.runs.score import print_runs
from ringfence.jobs.cli.console import print_json, say, silence, table
from ringfence.jobs.cli.options import AsJson, with_config

if TYPE_CHECKING:
    from ringfence.connector.neo4j.embedded import Progress as ServerProgress
    from ringfence.jobs.cli.progress import Report
    from ringfence.jobs.project.workspace import Workspace
    from ringfence.jobs.samples.demo import DemoReport
    from ringfence.jobs.scoring.score import RunReport
    from ringfence.jobs.training.train import TrainReport


CONFIG_NAME = "ringfence.toml"


def demo(
    folder: Annotated[Path, typer.Option(help="Folder of the demo.")] = Path(".ringfence/demo"),
    nodes: Annotated[int, typer.Option(min=1_000, help="Accounts in the sample graph.")] = 6_000,
    arriving: Annotated[int, typer.Option(min=1, help="Batches that arrive later.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the sample graph.")] = 7,
    serve: Annotated[
        bool | None,
        typer.Option(
            "--serve/--no-serve",
            help="End with the dashboard open, until Ctrl-C; by default on a terminal only.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", help="The ringfence.toml to write; its folder is the demo's."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run everything once on a sample graph: load, train, score arriving batches, audit."""
    if config is not None and config.name != CONFIG_NAME:
        raise typer.BadParameter(
            f"the demo writes a file named {CONFIG_NAME}", param_hint="--config"
        )
    folder = folder if config is None else config.parent
    from ringfence.jobs.dashboard.server import somebody_watches
    from ringfence.jobs.samples.demo import run_demo

    stay_open = not as_json and somebody_watches() if serve is None else serve
    with silence() if as_json else nullcontext():
        report = run_demo(folder, nodes, arriving, seed, ConsoleView(folder), serve=stay_open)
    if as_json:
        print_json(report)


class ConsoleView:
    """Tells each step of the demo on the terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def progress(self, what: str) -> AbstractContextManager[Report]:
        """Show how far a step has come."""
        from ringfence.jobs.cli.progress import show_progress

        return show_progress(what)

    def server_progress(self, report: Report) -> Callable[[ServerProgress], None]:
        """Show the start of the embedded server through `report`."""
        from ringfence.jobs.cli.progress import server_progress

        return server_progress(report)

    def opened(self, workspace: Workspace) -> None:
        """Say where both stores are."""
        audit_url = workspace.settings.audit.url
        say(f"Neo4j runs at {workspace.graph.uri}, the audit store is {audit_url}")

    def loaded(
        self, accounts: int, devices: int, merchants: int, relationships: int, known: int
    ) -> None:
        """Say what the first batch holds."""
        say(
            f"Loaded {accounts:,} accounts with {devices:,} devices, {merchants:,} merchants and "
            f"{relationships:,} relationships between them; their properties are amounts, "
            f"categories, dates and gaps. The kind of {known:,} accounts is known."
        )

    def trained(self, training: TrainReport) -> None:
        """Say what was trained, and its guarantee."""
        say(
            f"Trained {training.network} {training.version} on {training.train:,} accounts in "
            f"{training.epochs} epochs (accuracy {training.calibration_accuracy:.2f} on "
            f"{training.calibration:,} calibration accounts)."
        )
        say(training.guarantee + ".")

    def scored(self, run: RunReport) -> None:
        """Say how many accounts a run evaluated."""
        say(f"Run {run.seq}: {run.evaluated:,} new accounts have their sets in the graph.")

    def finished(self, report: DemoReport, query: str) -> None:
        """Show runs, coverage, the answer to a query, and what to type next."""
        print_runs(report.runs, "Thresholds move as the graph grows; the naive one does not")
        print_audit(
            report.audit, "Coverage of the accounts whose kind became known (promised: 90 %)"
        )
        _print_query(query, report.rows)
        _print_next_steps(self.folder / "ringfence.toml")

    def serving(self, url: str, neo4j_uri: str) -> None:
        """Say that the dashboard is open, and how to log in to Neo4j."""
        credentials = self.folder / ".ringfence" / "neo4j" / "credentials.env"
        say(
            f"\nThe dashboard is open at {url}\n"
            f"Neo4j stays open at {neo4j_uri} (login: {credentials}). Ctrl-C ends both."
        )

    def closing(self) -> None:
        """Say that Neo4j closes."""
        say("Closing Neo4j.")


def _print_query(query: str, rows: tuple[dict[str, Any], ...]) -> None:
    say("\nWhich devices do accounts share that may be mules, at any level you like:\n")
    say(query + "\n")
    names = list(rows[0]) if rows else []
    table(
        "", names, [["" if row[name] is None else str(row[name]) for name in names] for row in rows]
    )


def _print_next_steps(config: Path) -> None:
    cypher = "MATCH (n)-[r:MAY_BE]->(c:RingfenceClass) RETURN n.id, c.name, r.p LIMIT 10"
    query = f'ringfence query "{cypher}"'
    say(
        "Where to look next:\n"
        f"  {with_config('ringfence serve', config)}     the dashboard\n"
        f"  {with_config('ringfence report', config)}    one HTML file to mail\n"
        f"  {with_config('ringfence status', config)}\n"
        f"  {with_config(query, config)}\n"
        f"  {config}   the configuration of the demo\n"
        f"  {with_config('ringfence init', None)}   for a graph of your own"
    )
