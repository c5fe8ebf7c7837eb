"""`ringfence demo`: run everything once on a sample graph."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringfence.jobs.cli.commands.record.triage import print_triage
from ringfence.jobs.cli.commands.runs.audit import print_audit
from ringfence.jobs.cli.commands.runs.score import print_runs
from ringfence.jobs.cli.console import print_json, say, silence, table
from ringfence.jobs.cli.options import AsJson, with_config
from ringfence.jobs.cli.project_view import ProjectConsoleView

if TYPE_CHECKING:
    from ringfence.jobs.samples.demo import DemoReport
    from ringfence.jobs.scoring.score import RunReport
    from ringfence.jobs.training.train import TrainReport


CONFIG_NAME = "ringfence.toml"
NODES = 6_000
ARRIVING = 5
SHOWN_PER_PILE = 3


def demo(
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of the demo: .ringfence/demo, or .ringfence/story."),
    ] = None,
    story: Annotated[
        bool,
        typer.Option(
            "--story",
            help="The life of a model instead: drift, alarm, candidate, promotion, rollback.",
        ),
    ] = False,
    nodes: Annotated[
        int | None,
        typer.Option(min=1_000, help=f"Accounts in the sample graph, {NODES:,} by default."),
    ] = None,
    arriving: Annotated[
        int | None,
        typer.Option(min=1, help=f"Batches that arrive later, {ARRIVING} by default."),
    ] = None,
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
    if story and arriving is not None:
        raise typer.BadParameter("the story has its own batches", param_hint="--arriving")
    usual = Path(".ringfence") / ("story" if story else "demo")
    folder = config.parent if config is not None else folder or usual
    from ringfence.connector.extras import require_imports
    from ringfence.jobs.dashboard.server import somebody_watches

    require_imports("train", "to train the demo's model")
    stay_open = not as_json and somebody_watches() if serve is None else serve
    if stay_open:
        require_imports("serve", "to show the dashboard")
    with silence() if as_json else nullcontext():
        report: Any
        if story:
            from ringfence.jobs.cli.story_view import StoryConsoleView
            from ringfence.jobs.samples.story import run_story

            told = StoryConsoleView(folder)
            report = run_story(folder, nodes or NODES, seed, told, serve=stay_open)
        else:
            from ringfence.jobs.samples.demo import run_demo

            view = ConsoleView(folder)
            batches = arriving or ARRIVING
            report = run_demo(folder, nodes or NODES, batches, seed, view, serve=stay_open)
    if as_json:
        print_json(report)


class ConsoleView(ProjectConsoleView):
    """Tells each step of the demo on the terminal."""

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
        scorer = [said for said in training.promise if said.startswith("network: ")]
        for sentence in (*scorer, *training.graph[:1]):
            say(sentence[0].upper() + sentence[1:] + ".")
        show = f"ringfence models show {training.version}"
        say(f"All of it, with what was tried: {with_config(show, self.folder / CONFIG_NAME)}")

    def scored(self, run: RunReport) -> None:
        """Say how many accounts a run evaluated."""
        say(f"Run {run.seq}: {run.evaluated:,} new accounts have their sets in the graph.")

    def finished(self, report: DemoReport, query: str) -> None:
        """Show runs, coverage, the answer to a query, and what to type next."""
        print_runs(report.runs, "Thresholds move as the graph grows; the naive one does not")
        print_audit(
            report.audit,
            "Coverage of the accounts whose kind became known "
            "(promised: 95 % of mules, 90 % of each other kind)",
        )
        _print_query(query, report.rows)
        say("\nWhom to investigate, whom to clear and who stays open in the last run:\n")
        print_triage(report.triage, report.lists, SHOWN_PER_PILE)
        _print_next_steps(self.folder / "ringfence.toml")


def _print_query(query: str, rows: tuple[dict[str, Any], ...]) -> None:
    say(
        "\nWhich devices do accounts share that may be mules, with p above 0.2 "
        "(a list to look at; what is promised are the sets):\n"
    )
    say(query + "\n")
    names = list(rows[0]) if rows else []
    table(
        "", names, [["" if row[name] is None else str(row[name]) for name in names] for row in rows]
    )


def _print_next_steps(config: Path) -> None:
    from ringfence.connector.neo4j.read.example_queries import CLASSES_OF_NODES

    query = f'ringfence query "{CLASSES_OF_NODES}"'
    say(
        "Where to look next:\n"
        f"  {with_config('ringfence serve', config)}     the dashboard\n"
        f"  {with_config('ringfence report', config)}    one HTML file to mail\n"
        f"  {with_config('ringfence status', config)}\n"
        f"  {with_config(query, config)}\n"
        f"  {config}   the configuration of the demo\n"
        f"  {with_config('ringfence init', None)}   for a graph of your own"
    )
