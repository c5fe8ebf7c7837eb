"""Two real graphs that nobody prepared, through init, migrate, doctor, train, score and audit.

    python -m benchmarks.real.run --flights FOLDER --faers FOLDER [--train-days 31 --days 28]

Each graph is loaded into a Neo4j of its own with its raw columns. `ringfence init` writes the
configuration, which is used as it is but for the length of training (at most 150 epochs, 30 without
a better one), so that it ends within half an hour on one core. The flights come day by day, their
status a week later; of the cases a random half comes after training. Printed: accuracy of the
likeliest class, AUROC (one class against the rest, averaged), mean set size and coverage, for nodes
of the period of training and for later ones, beside own columns alone, a projection to one label,
and boosted trees. Of the later days the first 14 stand apart: the status of a day is known a week
later, so that until then only flights of the training days calibrate. The whole year is
`--train-days 270 --days 60`: that is hours on one core.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.real import faers, flights
from benchmarks.real.baselines import chain, network_chances, share_table, tree_chances
from benchmarks.real.results import Table, judge_sets
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.config.load import load
from ringfence.jobs.project.seed_key import seed_keys
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.init import run_init
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.train import run_training
from ringfence.models.training.loop import Epoch

KNOWN_AFTER_DAYS = 7
FIRST_LATER = 14  # days: the first half of what comes later
HELD_OUT_SHARE = 0.1  # of the flights in training, whose status comes after it
SEED = 7
EPOCHS_PER_LINE = 50
MOST_EPOCHS, PATIENCE = 150, 30
NO_EDGES = np.empty((2, 0), np.int64)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flights", type=Path)
    parser.add_argument("--faers", type=Path)
    parser.add_argument("--train-days", type=int, default=31)
    parser.add_argument("--days", type=int, default=28)
    options = parser.parse_args()
    tables = []
    if options.faers:
        tables.append(in_server(lambda graph, folder: run_cases(graph, folder, options.faers)))
    if options.flights:
        tables.append(in_server(lambda graph, folder: run_flights(graph, folder, options)))
    for table in tables:
        print(table.as_markdown(), flush=True)


def in_server(work: Callable[[Graph, Path], Table]) -> Table:
    """Run `work` with an empty graph and a folder, which holds the server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            embedded.running(folder / ".ringfence" / "neo4j") as server,
            closing(connect(server.uri, server.user, server.password)) as graph,
        ):
            return work(graph, folder)


def run_flights(graph: Graph, folder: Path, options: argparse.Namespace) -> Table:
    """Train on the first days, then score a day at a time."""
    data = flights.read_flights(options.flights)
    days = list(flights.days_of(data))
    first, later = days[: options.train_days], days[options.train_days :][: options.days]
    known = pd.concat(first[: len(first) - KNOWN_AFTER_DAYS])
    held_out = known.sample(frac=HELD_OUT_SHARE, random_state=SEED)
    seen = known.drop(held_out.index)
    say("flights: loading", f"{sum(map(len, first)):,} flights of {len(first)} days")
    flights.load_context(graph, data)
    flights.load_day(graph, data, pd.concat(first))
    flights.reveal(graph, seen)
    with prepared(folder, "flights") as workspace:
        score(workspace)  # those whose status is not known yet
        flights.reveal(graph, held_out)
        for place, day in enumerate(later, start=len(first)):
            flights.load_day(graph, data, day)
            score(workspace)
            flights.reveal(graph, days[place - KNOWN_AFTER_DAYS])
            run_audit(workspace)
        for place in range(len(first) + len(later) - KNOWN_AFTER_DAYS, len(first) + len(later)):
            flights.reveal(graph, days[place])
        audit = run_audit(workspace)
        say("audit", f"{audit.newly_known:,} classes of the last days became known")
        groups = {"same days": held_out, f"next {min(FIRST_LATER, len(later))} days":
                  pd.concat(later[:FIRST_LATER])}  # fmt: skip
        if len(later) > FIRST_LATER:
            after = later[FIRST_LATER:]
            groups[f"{len(after)} days after them"] = pd.concat(after)
        table = Table(f"flights, {len(seen):,} of {len(first)} days with a status",
                      {name: len(part) for name, part in groups.items()})  # fmt: skip
        parts = list(groups.values())
        truths = [dict(zip(part["id"], part["status"], strict=True)) for part in parts]
        table.add("ringfence, typed_sage", [judge_sets(workspace, one) for one in truths])
    _flight_baselines(table, data, seen, parts)
    return table


def _flight_baselines(
    table: Table, data: flights.Flights, seen: pd.DataFrame, parts: list[pd.DataFrame]
) -> None:
    """Other ways on the same flights."""
    everyone = pd.concat([seen, *parts]).sort_values("id").reset_index(drop=True)
    place = {key: at for at, key in enumerate(everyone["id"])}
    known = [place[key] for key in seen["id"]]
    wanted = [[place[key] for key in part["id"]] for part in parts]
    y, own = everyone["status"], everyone[list(flights.OWN_COLUMNS)]
    joined = flights.one_hop_table(data, everyone)
    when = everyone["time_hour"]
    hours = everyone["origin"] + " " + when
    edges = np.concatenate([chain(everyone["tailnum"], when), chain(hours, everyone["id"])], axis=1)
    ways = {
        "own columns, MLP": lambda rows: network_chances("MLP", own, y, NO_EDGES, known, rows),
        "one label (same plane, same hour), SAGE": lambda rows: network_chances(
            "SAGE", own, y, edges, known, rows
        ),
        "own columns, boosted trees": lambda rows: tree_chances(own, y, known, rows),
        "own and one hop joined by hand, boosted trees": lambda rows: tree_chances(
            joined, y, known, rows
        ),
    }
    table.compare(ways, y, wanted)


def run_cases(graph: Graph, folder: Path, source: Path) -> Table:
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
        audit = run_audit(workspace)
        say("audit", f"{audit.newly_known:,} classes became known")
        known = [key for key in keys[: half * 9 // 10] if key in data.outcome]
        came = [key for key in keys[half:] if key in data.outcome]
        table = Table(f"drug-safety cases, {len(known):,} with an outcome", {"later": len(came)})
        truth = {key: data.outcome[key] for key in came}
        table.add("ringfence, typed_sage", [judge_sets(workspace, truth)])
    own = data.demographics[data.demographics["primaryid"].isin({*known, *came})]
    own = own.reset_index(drop=True)
    place = {key: at for at, key in enumerate(own["primaryid"])}
    seen, wanted = [place[key] for key in known], [place[key] for key in came]
    y = own["primaryid"].map(data.outcome)
    joined = share_table(own, faers.joined_tables(data), "primaryid").drop(columns="primaryid")
    edges = chain_cases(data, own)
    own = own.drop(columns="primaryid")
    ways = {
        "own columns, MLP": lambda rows: network_chances("MLP", own, y, NO_EDGES, seen, rows),
        "one label (same drug), SAGE": lambda rows: network_chances(
            "SAGE", own, y, edges, seen, rows
        ),
        "own columns, boosted trees": lambda rows: tree_chances(own, y, seen, rows),
        "own and one hop joined by hand, boosted trees": lambda rows: tree_chances(
            joined, y, seen, rows
        ),
    }
    table.compare(ways, y, [wanted])
    return table


def chain_cases(data: faers.Cases, own: pd.DataFrame) -> np.ndarray:
    """Join each case to the next one with the same drug [2, E]."""
    place = {key: at for at, key in enumerate(own["primaryid"])}
    drugs = data.drugs[data.drugs["primaryid"].isin(place)].reset_index(drop=True)
    pairs = chain(drugs["name"], drugs["primaryid"])
    rows = drugs["primaryid"].map(place).to_numpy()
    joined = rows[pairs]
    return np.unique(joined[:, joined[0] != joined[1]], axis=1)


@contextmanager
def prepared(folder: Path, project: str) -> Iterator[Workspace]:
    """Let init write the configuration, migrate, let doctor check it, and train; it stays open."""
    path = folder / "ringfence.toml"
    started = time.perf_counter()
    proposal = run_init(path, "embedded", "neo4j", None, project, force=True)
    found = f"{proposal.label.value}.{proposal.class_property.value}"
    seconds = time.perf_counter() - started
    say("init", f"{found}, {len(proposal.context)} labels around it, {seconds:.0f} s")
    for left in proposal.left_out:
        say("  left out", f"{left.name}: {left.why}")
    settings = load(path)
    changed = {"max_epochs": MOST_EPOCHS, "patience": PATIENCE, "network": "typed_sage"}
    shorter = settings.model.model_copy(update={**changed, "graph_check": False})
    marginal = settings.conformal.model_copy(update={"promise": "marginal"})
    seed_keys(settings).write(settings.model.seed)  # published: the same sets in every run
    changes = {"model": shorter, "conformal": marginal}
    with open_workspace(settings.model_copy(update=changes)) as workspace:
        run_migrations(workspace)
        errors = [one.text for one in run_doctor(path) if one.level == "error"]
        say("doctor", "; ".join(errors) or "no error")
        started = time.perf_counter()
        trained = run_training(workspace, on_epoch=say_epoch)
        seconds = time.perf_counter() - started
        say("train", f"{trained.train:,} nodes, {trained.epochs} epochs, {seconds:.0f} s")
        yield workspace


def say_epoch(epoch: Epoch) -> None:
    """Print a line now and then, so that training is never silent."""
    if epoch.number % EPOCHS_PER_LINE == 0:
        say(f"  epoch {epoch.number}", f"validation loss {epoch.validation_loss:.3f}")


def score(workspace: Workspace) -> None:
    """Score what is new."""
    started = time.perf_counter()
    run = run_scoring(workspace)
    notes = "; ".join(run.run.notes[:3]) if run.run else "nobody was due"
    say(f"run {run.seq}", f"{run.evaluated:,} sets of mean size {run.mean_size:.2f}, "
        f"{time.perf_counter() - started:.1f} s ({notes})")  # fmt: skip


def say(what: str, text: str) -> None:
    """Print a line at once."""
    print(f"{what:34} {text}", flush=True)


if __name__ == "__main__":
    main()
