"""Two real graphs that nobody prepared, through init, doctor, train, score and audit.

    python -m benchmarks.real.run --flights FOLDER --faers FOLDER [--train-days 31 --days 7]

Each graph is loaded into a Neo4j of its own with its raw columns. `ringfence init` writes the
configuration, which is used as it is. The flights come day by day, their status a week later; of
the cases a random half comes after training. Printed: accuracy of the likeliest class, AUROC
(one class against the rest, averaged), mean set size and coverage on the nodes whose class became
known; beside them boosted trees on the label's own columns, which know no graph.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from benchmarks.real import faers, flights
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.store.models import newest_manifest
from ringfence.connector.store.predictions import some_predictions
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.init import run_init
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training

KNOWN_AFTER_DAYS = 7
SEED = 7
OWN_COLUMNS = ("sched_dep_time", "sched_arr_time", "flight", "distance")
JOINED_COLUMNS = (*OWN_COLUMNS, "carrier", "origin", "dest")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flights", type=Path)
    parser.add_argument("--faers", type=Path)
    parser.add_argument("--train-days", type=int, default=31)
    parser.add_argument("--days", type=int, default=7)
    options = parser.parse_args()
    if options.flights:
        in_server(lambda graph, folder: run_flights(graph, folder, options))
    if options.faers:
        in_server(lambda graph, folder: run_cases(graph, folder, options.faers))


def in_server(work: Callable[[Graph, Path], None]) -> None:
    """Run `work` with an empty graph and a folder, which holds the server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            embedded.running(folder / ".ringfence" / "neo4j") as server,
            closing(connect(server.uri, server.user, server.password)) as graph,
        ):
            work(graph, folder)


def run_flights(graph: Graph, folder: Path, options: argparse.Namespace) -> None:
    """Train on the first days, then score a day at a time."""
    data = flights.read_flights(options.flights)
    days = list(flights.days_of(data))
    first, later = days[: options.train_days], days[options.train_days :][: options.days]
    say("flights: loading", f"{sum(map(len, first)):,} flights of {len(first)} days")
    flights.load_context(graph, data)
    flights.load_day(graph, data, pd.concat(first))
    known = len(first) - KNOWN_AFTER_DAYS
    flights.reveal(graph, pd.concat(first[:known]))
    with prepared(folder, "flights") as workspace:
        score(workspace)  # the last days of training, whose status is not known yet
        for place, day in enumerate(later, start=len(first)):
            flights.load_day(graph, data, day)
            score(workspace)
            flights.reveal(graph, days[place - KNOWN_AFTER_DAYS])
        for place in range(len(first) + len(later) - KNOWN_AFTER_DAYS, len(first) + len(later)):
            flights.reveal(graph, days[place])
        run_audit(workspace)
        came = pd.concat(later)
        truth = {f"i:{key}": y for key, y in zip(came["id"], came["status"], strict=True)}
        report(workspace, "flights, days after training", truth)
    seen = pd.concat(first[:known])
    report_trees("boosted trees, own columns", seen, came, OWN_COLUMNS, "status")
    report_trees("boosted trees, and keys of context", seen, came, JOINED_COLUMNS, "status")


def run_cases(graph: Graph, folder: Path, source: Path) -> None:
    """Train on a random half of the cases, then score the other half at once."""
    data = faers.read_cases(source)
    keys = sorted(data.demographics["primaryid"].tolist())
    random.Random(SEED).shuffle(keys)
    half = len(keys) // 2
    say("faers: loading", f"{len(keys):,} cases")
    faers.load_context(graph, data)
    faers.load_cases(graph, data, keys[:half])
    faers.reveal(graph, data, keys[: half * 9 // 10])
    with prepared(folder, "faers") as workspace:
        score(workspace)
        faers.load_cases(graph, data, keys[half:])
        score(workspace)
        faers.reveal(graph, data, keys)
        run_audit(workspace)
        truth = {f"i:{key}": data.outcome[key] for key in keys[half:] if key in data.outcome}
        report(workspace, "faers, the half that came later", truth)


@contextmanager
def prepared(folder: Path, project: str) -> Iterator[Workspace]:
    """Let init write the configuration, doctor check it, and train; the project stays open."""
    path = folder / "ringfence.toml"
    started = time.perf_counter()
    proposal = run_init(path, "embedded", "neo4j", None, project, force=True)
    found = f"{proposal.label.value}.{proposal.class_property.value}"
    seconds = time.perf_counter() - started
    say("init", f"{found}, {len(proposal.context)} labels around it, {seconds:.0f} s")
    for left in proposal.left_out:
        say("  left out", f"{left.name}: {left.why}")
    with open_workspace(load(path)) as workspace:
        run_migrations(workspace)
        errors = [one.text for one in run_doctor(path) if one.level == "error"]
        say("doctor", "; ".join(errors) or "no error")
        started = time.perf_counter()
        trained = run_training(workspace)
        seconds = time.perf_counter() - started
        say("train", f"{trained.train:,} nodes, {trained.epochs} epochs, {seconds:.0f} s")
        yield workspace


def score(workspace: Workspace) -> None:
    """Score what is new."""
    started = time.perf_counter()
    run = run_scoring(workspace)
    notes = "; ".join(run.run.notes[:3]) if run.run else "nobody was due"
    say(f"run {run.seq}", f"{run.evaluated:,} sets of mean size {run.mean_size:.2f}, "
        f"{time.perf_counter() - started:.1f} s ({notes})")  # fmt: skip


def report(workspace: Workspace, what: str, truth: dict[str, str]) -> None:
    """Print how good the sets of some nodes are."""
    classes = sorted(set(truth.values()))
    keys = sorted(truth)
    stored = [
        one
        for start in range(0, len(keys), 500)
        for one in some_predictions(workspace.store, workspace.project, keys[start : start + 500])
    ]
    names = run_classes(workspace)
    told = np.array([one.p_values for one in stored])
    y = [truth[one.node_key] for one in stored]
    best = [names[place] for place in told.argmax(axis=1)]
    scores = told / told.sum(axis=1, keepdims=True)
    places = [names.index(name) for name in classes if name in names]
    auroc = np.mean([
        roc_auc_score([one == names[place] for one in y], scores[:, place]) for place in places
    ])  # fmt: skip
    pairs = zip(y, stored, strict=True)
    covered = np.mean([class_ in one.classes for class_, one in pairs])
    size = np.mean([one.size for one in stored])
    accuracy = np.mean([a == b for a, b in zip(best, y, strict=True)])
    say(what, f"{len(stored):,} nodes: accuracy {accuracy:.3f}, AUROC {auroc:.3f}, "
        f"set size {size:.2f}, coverage {covered:.3f}")  # fmt: skip


def run_classes(workspace: Workspace) -> list[str]:
    """Return the classes in the order of the model's outputs."""
    return list(json.loads(newest_manifest(workspace.store, workspace.project))["classes"])


def report_trees(
    what: str, seen: pd.DataFrame, came: pd.DataFrame, columns: tuple[str, ...], target: str
) -> None:
    """Print accuracy and AUROC of boosted trees on a joined table."""
    both = pd.concat([seen, came])[list(columns)].copy()
    for name in columns:
        if both[name].dtype.kind not in "if":
            both[name] = both[name].astype("category").cat.codes
    model = HistGradientBoostingClassifier(random_state=0).fit(both[: len(seen)], seen[target])
    chances = model.predict_proba(both[len(seen) :])
    accuracy = float((model.predict(both[len(seen) :]) == came[target]).mean())
    auroc = np.mean([
        roc_auc_score(came[target] == name, chances[:, place])
        for place, name in enumerate(model.classes_)
    ])  # fmt: skip
    say(what, f"{len(came):,} nodes: accuracy {accuracy:.3f}, AUROC {auroc:.3f}")


def say(what: str, text: str) -> None:
    """Print a line at once."""
    print(f"{what:34} {text}", flush=True)


if __name__ == "__main__":
    main()
