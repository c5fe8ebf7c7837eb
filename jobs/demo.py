"""`ringfence demo`: a growing graph, a model, arriving batches, late classes, an audit."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.connector import bulk, migrate_graph, migrate_sql
from ringfence.jobs import display, printing
from ringfence.jobs.auditing import AuditReport, run_audit
from ringfence.jobs.config import load
from ringfence.jobs.sample_graph import SAMPLE_MAPPING, Batch, batches, reveal, sample_toml
from ringfence.jobs.sample_graph import load as load_batch
from ringfence.jobs.scoring import RunReport, run_scoring
from ringfence.jobs.serving import changed, run_server, show_in_browser
from ringfence.jobs.settings import Settings
from ringfence.jobs.training import TrainReport, run_training
from ringfence.jobs.workspace import Workspace, open_workspace
from ringfence.models.sample import SampleGraph, sample_graph

QUERY = """MATCH (a:Account)-[r:MAY_BE]->(c:RingfenceClass {name: 'mule'})
WHERE r.p > 0.2
RETURN a.id AS account, round(r.p, 3) AS p ORDER BY p DESC LIMIT 5"""
LABELLED = 0.5  # share of the first accounts whose kind is known
KNOWN_LATER = 0.8  # share of evaluated accounts whose kind becomes known, a batch later


@dataclass(frozen=True, slots=True)
class DemoReport:
    """All that the demo did, for `--json`."""

    folder: str
    training: TrainReport
    runs: tuple[RunReport, ...]
    audit: AuditReport
    rows: tuple[dict[str, Any], ...]


def run_demo(
    folder: Path,
    nodes: int,
    arriving: int,
    seed: int,
    *,
    serve: bool = False,
    quiet: bool = False,
) -> DemoReport:
    """Run the whole line once in `folder`; what an earlier demo left there is replaced."""
    settings = _fresh(folder)
    with ExitStack() as stack:
        if quiet:
            stack.enter_context(display.silence())
        workspace = _open(settings, stack)
        bulk.clear(workspace.graph)
        migrate_sql.migrate_sql(workspace.store)
        migrate_graph.migrate_graph(workspace.graph)
        migrate_graph.create_user_indexes(workspace.graph, SAMPLE_MAPPING)
        display.say(f"Neo4j runs at {workspace.graph.uri}, the audit store is {settings.audit.url}")
        report = _line(workspace, folder, nodes, arriving, seed)
        if serve:
            _wait(workspace, folder)
        return report


def _open(settings: Settings, stack: ExitStack) -> Workspace:
    """Open the project; the bar of the start ends with the start."""
    with display.progress("starting Neo4j") as report:
        return stack.enter_context(open_workspace(settings, display.server_progress(report)))


def _wait(workspace: Workspace, folder: Path) -> None:
    credentials = folder / ".ringfence" / "neo4j" / "credentials.env"

    def ready(url: str) -> None:
        display.say(
            f"\nThe dashboard is open at {url}\n"
            f"Neo4j stays open at {workspace.graph.uri} (login: {credentials}). Ctrl-C ends both."
        )
        show_in_browser(url)

    run_server(changed(workspace.settings, None, 0), ready)
    display.say("Closing Neo4j.")


def _line(workspace: Workspace, folder: Path, nodes: int, arriving: int, seed: int) -> DemoReport:
    sample = sample_graph(nodes, seed=seed)
    portion = nodes // (2 * arriving)
    first, *later = batches(sample, [nodes - arriving * portion] + [portion] * arriving)
    rng = np.random.default_rng(seed)
    labelled = rng.random(nodes) < LABELLED
    with display.progress("loading the first accounts") as report:
        load_batch(workspace.graph, sample, first, labelled, report)
    display.say(
        f"Loaded {len(first.nodes):,} accounts and {len(first.edges):,} payments; the kind of "
        f"{int(labelled[first.nodes].sum()):,} of them is known."
    )
    training = _train(workspace)
    runs = [_score(workspace)]
    audit = None
    seen = first.nodes[~labelled[first.nodes]]
    for batch in later:
        _arrive(workspace, sample, batch)
        runs.append(_score(workspace))
        reveal(workspace.graph, sample, seen[rng.random(len(seen)) < KNOWN_LATER])
        seen = batch.nodes
        audit = run_audit(workspace)
    audit = audit or run_audit(workspace)
    printing.runs(runs, "Thresholds move as the graph grows; the naive one does not")
    printing.audit(audit, "Coverage of the accounts whose kind became known (promised: 90 %)")
    rows = tuple(row.data() for row in workspace.graph.read(QUERY))
    _show_query(rows)
    _show_next(folder)
    return DemoReport(str(folder), training, tuple(runs), audit, rows)


def _fresh(folder: Path) -> Settings:
    """Write the configuration; keep the server's folder, which is slow to make."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ringfence.toml"
    path.write_text(sample_toml("embedded", "demo", groups=("region",)), encoding="utf-8")
    settings = load(path)
    own = settings.engine.folder
    for name in ("models", "mirror", "forward"):
        shutil.rmtree(own / name, ignore_errors=True)
    for file in own.glob("audit.*"):
        file.unlink()
    return settings


def _train(workspace: Workspace) -> TrainReport:
    most = workspace.settings.model.max_epochs
    with display.progress("training") as report:
        done = run_training(
            workspace, report, lambda epoch: report("training, epochs", epoch.number + 1, most)
        )
    display.say(
        f"Trained {done.network} {done.version} on {done.train:,} accounts in {done.epochs} epochs "
        f"(accuracy {done.calibration_accuracy:.2f} on {done.calibration:,} calibration accounts)."
    )
    display.say(done.guarantee + ".")
    return done


def _arrive(workspace: Workspace, sample: SampleGraph, batch: Batch) -> None:
    with display.progress("new accounts") as report:
        load_batch(workspace.graph, sample, batch, np.zeros(sample.nodes, bool), report)


def _score(workspace: Workspace) -> RunReport:
    with display.progress("scoring") as report:
        done = run_scoring(workspace, report)
    display.say(f"Run {done.seq}: {done.evaluated:,} new accounts have their sets in the graph.")
    return done


def _show_query(rows: tuple[dict[str, Any], ...]) -> None:
    display.say("\nWhich accounts may be mules, at any level you like:\n")
    display.say(QUERY + "\n")
    display.table("", ["account", "p"], [[str(row["account"]), row["p"]] for row in rows])


def _show_next(folder: Path) -> None:
    config = folder / "ringfence.toml"
    display.say(
        "Where to look next:\n"
        f"  ringfence serve --config {config}     the dashboard\n"
        f"  ringfence report --config {config}    one HTML file to mail\n"
        f"  ringfence status --config {config}\n"
        f'  ringfence query "MATCH (n)-[r:MAY_BE]->(c:RingfenceClass) '
        f'RETURN n.id, c.name, r.p LIMIT 10" --config {config}\n'
        f"  {config}   the configuration of the demo\n"
        "  ringfence init   for a graph of your own"
    )
