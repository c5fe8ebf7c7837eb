"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence import __version__
from ringfence.jobs.neo4j_command import app as neo4j_app
from ringfence.jobs.reproduce.command import reproduce
from ringfence.jobs.schedule.command import schedule

if TYPE_CHECKING:
    from ringfence.jobs.display import Report
    from ringfence.jobs.workspace import Workspace

app = typer.Typer(
    name="ringfence",
    help="Prediction sets of known strength for every new node in a Neo4j graph, with an audit.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(neo4j_app, name="neo4j")
app.command()(schedule)
app.command()(reproduce)

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="The file to read instead of ringfence.toml.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

ALARM = 2


def main() -> None:
    """Run the command line: exit 0 fine, 1 error, 2 a coverage alarm."""
    from ringfence.connector.errors import RingfenceError
    from ringfence.jobs.display import print_error

    try:
        app()
    except RingfenceError as error:
        print_error(error, as_json="--json" in sys.argv)
        sys.exit(1)


@contextmanager
def _project(config: Path | None, what: str) -> Iterator[tuple[Workspace, Report]]:
    """Open the configured project and show progress while it works."""
    from ringfence.jobs import display
    from ringfence.jobs.config import load
    from ringfence.jobs.workspace import open_workspace

    settings = load(config)
    with (
        display.progress(what) as report,
        open_workspace(settings, display.server_progress(report)) as workspace,
    ):
        yield workspace, report


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ringfence {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the demo lives.")] = Path(".ringfence/demo"),
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
    as_json: AsJson = False,
) -> None:
    """Run everything once on a sample graph: load, train, score arriving batches, audit."""
    from ringfence.jobs import display
    from ringfence.jobs.demo import run_demo
    from ringfence.jobs.serving import somebody_watches

    stay = not as_json and somebody_watches() if serve is None else serve
    report = run_demo(folder, nodes, arriving, seed, serve=stay, quiet=as_json)
    if as_json:
        display.print_json(report)


@app.command()
def init(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path(
        "ringfence.toml"
    ),
    uri: Annotated[str, typer.Option(help="Server to look at; `embedded` for the own one.")] = (
        "embedded"
    ),
    user: Annotated[str, typer.Option(help="Who logs in.")] = "neo4j",
    label: Annotated[str | None, typer.Option(help="Label to predict; else the likeliest.")] = None,
    project: Annotated[str, typer.Option(help="Name of the project.")] = "default",
    force: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Look at the live graph and write a filled-in ringfence.toml, with the reasons in it."""
    from ringfence.jobs import display, printing
    from ringfence.jobs.init import run_init

    with display.progress("looking at the graph") as report:
        proposal = run_init(
            output, uri, user, label, project, force=force, download=display.server_progress(report)
        )
    printing.show(proposal, as_json, lambda: printing.proposal(proposal, output))


@app.command()
def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Check the configuration against the live graph and both stores; list findings with fixes."""
    from ringfence.jobs import display, printing
    from ringfence.jobs.doctor import run_doctor

    with display.progress("examining") as report:
        findings = run_doctor(config, display.server_progress(report))
    printing.show(findings, as_json, lambda: printing.findings(findings))
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


@app.command()
def migrate(config: Config = None, as_json: AsJson = False) -> None:
    """Bring the SQL store and the graph to this version; doing it twice does no harm."""
    from ringfence.jobs import printing
    from ringfence.jobs.migrating import run_migrations

    with _project(config, "migrating") as (workspace, _):
        done = run_migrations(workspace)
    printing.show({"done": done}, as_json, lambda: printing.migrations(done))


@app.command()
def train(config: Config = None, as_json: AsJson = False) -> None:
    """Train a new model version on the labelled nodes and set its calibration nodes aside."""
    from ringfence.jobs import printing
    from ringfence.jobs.training import run_training

    with _project(config, "training") as (workspace, report):
        most = workspace.settings.model.max_epochs
        done = run_training(
            workspace, report, lambda epoch: report("training, epochs", epoch.number + 1, most)
        )
    printing.show(done, as_json, lambda: printing.training(done))


@app.command()
def score(config: Config = None, as_json: AsJson = False) -> None:
    """Evaluate the nodes that are new since the last run and write their prediction sets."""
    from ringfence.jobs import printing
    from ringfence.jobs.scoring import run_scoring

    with _project(config, "scoring") as (workspace, report):
        done = run_scoring(workspace, report)
    printing.show(done, as_json, lambda: printing.run(done))


@app.command()
def audit(
    as_of: Annotated[
        str | None,
        typer.Option(help="Only recompute coverage as it was known at this ISO time; no writing."),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Take in classes that became known and say whether the promise was kept (exit 2: broken)."""
    from ringfence.jobs import printing, printing_coverage
    from ringfence.jobs.auditing import coverage_as_of, run_audit

    if as_of is not None:
        from ringfence.jobs.config import load

        rows = coverage_as_of(load(config), as_of)
        printing.show(rows, as_json, lambda: printing_coverage.as_of(rows, as_of))
        return
    with _project(config, "auditing") as (workspace, report):
        done = run_audit(workspace, report)
    printing.show(done, as_json, lambda: printing.audit(done))
    if done.alarm:
        raise typer.Exit(ALARM)


@app.command()
def status(config: Config = None, as_json: AsJson = False) -> None:
    """Show models, runs, coverage and quarantine from the audit store alone."""
    from ringfence.jobs import printing
    from ringfence.jobs.audit_store import open_audit
    from ringfence.jobs.config import load
    from ringfence.jobs.status import read_status

    settings = load(config)
    with open_audit(settings) as store:
        found = read_status(store, settings.project)
    printing.show(found, as_json, lambda: printing.status(found))


@app.command()
def reconcile(
    repair: Annotated[
        bool, typer.Option("--repair", help="Put right what was found; without it, only look.")
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Find missed, deleted and damaged nodes, relationships and sets; show them, repair them."""
    from ringfence.jobs import printing
    from ringfence.jobs.reconciling import run_reconcile

    with _project(config, "comparing") as (workspace, report):
        done = run_reconcile(workspace, repair=repair, progress=report)
    printing.show(done, as_json, lambda: printing.reconciliation(done))


@app.command()
def verify(
    second_client: Annotated[
        bool, typer.Option("--second-client", help="Read the graph back by py2neo too.")
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Check that everything on record is still what was decided (exit 1: something is not)."""
    from ringfence.jobs import printing
    from ringfence.jobs.verifying import run_verification

    with _project(config, "verifying") as (workspace, _):
        done = run_verification(workspace, second_client=second_client)
    printing.show(done, as_json, lambda: printing.verification(done))
    if done.problems:
        raise typer.Exit(1)


@app.command()
def rescore(
    keys: Annotated[list[str], typer.Argument(help="Keys of the nodes to look at again.")],
    reason: Annotated[str, typer.Option(help="Why; it goes on record.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Look again at nodes on purpose: kept apart, without a guarantee, out of the audit."""
    from ringfence.jobs import printing
    from ringfence.jobs.rescoring import run_rescoring

    with _project(config, "looking again") as (workspace, report):
        done = run_rescoring(workspace, keys, reason, report)
    printing.show(done, as_json, lambda: printing.rescores(done))


@app.command()
def explain(
    key: Annotated[str, typer.Argument(help="Key of an evaluated node.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show one node's set with its p-values, run, chain entry, neighbours and class when known."""
    from ringfence.jobs import printing
    from ringfence.jobs.explaining import run_explain

    with _project(config, "looking") as (workspace, _):
        found = run_explain(workspace, key)
    printing.show(found, as_json, lambda: printing.explanation(found))


@app.command()
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "ringfence-report"
    ),
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", help="html, csv, json or parquet; may be repeated."),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Write the audit as one self-contained HTML file, and as CSV, JSON or Parquet."""
    from ringfence.jobs import printing
    from ringfence.jobs.config import load
    from ringfence.jobs.report.writing import run_report

    done = run_report(load(config), output, tuple(format_ or ["html"]))
    printing.show(done, as_json, lambda: printing.report(done))


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes a free one.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Open the dashboard in a browser on this machine, until Ctrl-C ends it."""
    from ringfence.jobs import display
    from ringfence.jobs.config import load
    from ringfence.jobs.serving import changed, run_server

    def tell(url: str) -> None:
        if as_json:
            display.print_json({"url": url})
        else:
            display.say(f"The dashboard is at {url}   (Ctrl-C ends it)")
        sys.stdout.flush()

    run_server(changed(load(config), host, port), tell)


@app.command()
def query(
    cypher: Annotated[str, typer.Argument(help="A reading Cypher query.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Run a reading Cypher query on the configured graph and print its rows."""
    from ringfence.jobs import printing

    with _project(config, "querying") as (workspace, _):
        rows = [row.data() for row in workspace.graph.read(cypher)]
    printing.show(rows, as_json, lambda: printing.rows(rows))


@app.command()
def sample(
    nodes: Annotated[int, typer.Option(min=100, max=10_000_000, help="How many accounts.")] = 1_000,
    arrival: Annotated[str, typer.Option(help="Exchangeable in `node` or `edge` order.")] = "node",
    labelled: Annotated[float, typer.Option(min=0, max=1, help="Share of known kinds.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the graph.")] = 7,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Load the sample graph of payment accounts in bulk into an empty database."""
    from ringfence.jobs import printing
    from ringfence.jobs.sample_graph import run_sample

    with _project(config, "loading") as (workspace, report):
        done = run_sample(workspace.graph, nodes, arrival, labelled, seed, report)
    printing.show(done, as_json, lambda: printing.sample(done))
