"""Each scorer on two real graphs in time order: log loss, AUROC, sizes of sets, coverage, cost.

    python -m benchmarks.scorers --flights FOLDER --faers FOLDER [--quick] [--seeds 0 1 2]

The first 60 % of the nodes, by time, are the past: five of seven train, two of seven stop the
training, as `[model]` has it; the later ones are halved at random into calibration and test. A
version is fitted as `ringfence train` fits it and evaluated by the pass of a run on the whole
graph; `auto` is the one with the lowest log loss on validation nodes. Sets are those of TPS at
90 %, for all nodes together and calibrated per class. Beside each scorer stands the same one on the
graph with the ends of the relationships permuted within each type. Planes are left out of the
flights: their absence tells of a cancelled flight.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from benchmarks.measuring import RESULTS, cpu_seconds, keep, kept, show
from benchmarks.real import faers, flights
from ringfence.connector.keys import encode_key
from ringfence.connector.mapping import (
    ColumnMapping,
    GraphMapping,
    NodeMapping,
    RelationMapping,
)
from ringfence.connector.mirror import Mirror, RawBlock, RelationshipBlock, context_key, create_raw
from ringfence.jobs.config.settings import ModelSettings
from ringfence.jobs.inference import inference_graph, outputs_at
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.training.chosen_fit import validation_log_loss
from ringfence.jobs.training.fit import fit_network
from ringfence.jobs.training.fitted import FittedNetwork
from ringfence.jobs.training.fitted_trees import blend
from ringfence.jobs.training.split import Split, stop_by_latest
from ringfence.models.scores import softmax64

ALPHA, PAST, TRAINED = 0.1, 0.6, 5 / 7
QUICK_NODES, MOST_NODES = 4_000, 30_000
SCORERS = ("typed_sage", "trees", "blend", "auto")
SHUFFLED = ("log_loss", "auroc", "set_size")
FLIGHT_COLUMNS = ("sched_dep_time", "sched_arr_time", "distance", "time_hour")
CASE_COLUMNS = ("eventDate", "age", "ageUnit", "ageGroup", "sex", "manufacturerName",
                "reportDate", "reporterOccupation")  # fmt: skip


@dataclass(frozen=True, slots=True)
class World:
    """Rows by label (key first), pairs by relation, and time and class of the classified nodes."""

    mapping: GraphMapping
    nodes: list[dict[str, dict[str, Any]]]
    pairs: list[list[tuple[Any, Any]]]
    times: dict[Any, int]
    classes: dict[Any, str]


def label(name: str, columns: tuple[str, ...], created_at: str | None = None) -> NodeMapping:
    return NodeMapping(name, "key", tuple(ColumnMapping(c) for c in columns), created_at)


def flight_world(folder: Path, most: int) -> World:
    """Flights of the year, evenly thinned, with airports, airlines and the weather of the hour."""
    data = flights.read_flights(folder)
    table = data.flights.iloc[:: max(1, len(data.flights) // most)]
    weather = data.weather.drop(columns=["year", "month", "day", "hour", "origin", "time_hour"])
    tables = [table, data.airports, data.airlines, weather]
    keys = ("id", "faa", "carrier", "id")
    columns = [
        FLIGHT_COLUMNS,
        *(tuple(t.columns.drop(k)) for t, k in zip(tables[1:], keys[1:], strict=True)),
    ]
    names = ("Flight", "Airport", "Airline", "Weather")
    nodes = tuple(
        label(n, c, None if at else "at")
        for at, (n, c) in enumerate(zip(names, columns, strict=True))
    )
    relations = tuple(
        RelationMapping(0, t, at)
        for t, at in zip(("FROM", "TO", "BY", "IN"), (1, 1, 2, 3), strict=True)
    )
    rows = [
        {row[key]: row for row in flights.rows_of(part[[key, *own]])}
        for part, key, own in zip(tables, keys, columns, strict=True)
    ]
    hours = table["origin"] + " " + table["time_hour"]
    ends = (table["origin"], table["dest"], table["carrier"], hours)
    pairs = [list(zip(table["id"], end, strict=True)) for end in ends]
    times = {
        i: int(pd.Timestamp(t).value) for i, t in zip(table["id"], table["time_hour"], strict=True)
    }
    return World(
        GraphMapping(nodes, relations, "status", "zoned"), rows, pairs, times,
        dict(zip(table["id"], table["status"], strict=True)),
    )  # fmt: skip


def case_world(folder: Path, most: int) -> World:
    """Cases with an outcome, by the day of their report, with drugs, reactions and sources."""
    data = faers.read_cases(folder)
    table = data.demographics[data.demographics["primaryid"].isin(data.outcome)]
    table = table.dropna(subset=["reportDate"])
    table = table.iloc[:: max(1, len(table) // most)]
    cases = {row["primaryid"]: faers._row(row) for row in table.to_dict("records")}
    cases = {key: row for key, row in cases.items() if isinstance(row.get("reportDate"), date)}
    drugs = data.drugs.dropna(subset=["name"]).drop_duplicates("name")
    context = [
        {
            n: {"substance": s}
            for n, s in zip(drugs["name"], drugs["primarySubstabce"], strict=True)
        },
        {d: {"text": d} for d in data.reactions["description"].dropna().unique()},
        {c: {"text": n} for c, n in zip(data.sources["code"], data.sources["name"], strict=True)},
    ]
    nodes = (label("Case", CASE_COLUMNS, "at"), label("Drug", ("substance",)),
             label("Reaction", ("text",)), label("Source", ("text",)))  # fmt: skip
    relations = tuple(
        RelationMapping(0, t, at) for t, at in zip(("TAKES", "SHOWS", "BY"), (1, 2, 3), strict=True)
    )
    joined = faers.joined_tables(data).values()
    pairs = [list(part.itertuples(index=False, name=None)) for part in joined]
    times = {
        key: int(datetime.combine(row["reportDate"], datetime.min.time(), UTC).timestamp() * 1e9)
        for key, row in cases.items()
    }
    return World(
        GraphMapping(nodes, relations, "outcome", "zoned"), [cases, *context], pairs, times,
        {key: data.outcome[key] for key in cases},
    )  # fmt: skip


def fill_mirror(world: World, place: Path) -> Mirror:
    """Return a mirror with all nodes and relationships, as a first read leaves it."""
    mirror = create_raw(place, "world", world.mapping.column_names)
    mirror.advance()
    for at, rows in enumerate(world.nodes):
        keys = list(rows)
        columns = [
            [plain(rows[key].get(name)) for key in keys] for name in world.mapping.column_names[at]
        ]
        times = np.array([world.times[key] if at == 0 else 0 for key in keys], np.int64)
        typed = [context_key(at, encode_key(native(key))) for key in keys]
        classes = [world.classes[key] if at == 0 else None for key in keys]
        mirror.add_nodes([RawBlock(at, typed, columns, classes, times)])
    for at, (relation, pairs) in enumerate(zip(world.mapping.relations, world.pairs, strict=True)):
        near = world.nodes[relation.target]
        kept = [(a, b) for a, b in pairs if a in world.nodes[0] and b in near]
        ends = [[context_key(side, encode_key(native(pair[end]))) for pair in kept]
                for end, side in enumerate((0, relation.target))]  # fmt: skip
        mirror.add_block(RelationshipBlock(at, *ends))
    mirror.add_relationships([])
    return mirror


def native(value: Any) -> Any:
    return int(value) if isinstance(value, int | np.integer) else str(value)


def plain(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value


def split_by_time(mirror: Mirror, seed: int) -> tuple[Split, np.ndarray[Any, Any]]:
    """The past, halves of the later period: the second half is the test."""
    rows = mirror.rows_of_label(0)
    rows = rows[np.argsort(mirror.created_ns[rows], kind="stable")]
    past, later = np.split(rows, [int(len(rows) * PAST)])
    rng = np.random.default_rng(seed)
    past, later = rng.permutation(past), rng.permutation(later)
    train, validation = np.split(past, [int(len(past) * TRAINED)])
    classes = sorted(mirror.class_names)
    order = np.array([classes.index(name) for name in mirror.class_names], np.int64)
    indices = order[np.asarray(mirror.classes)]
    indices[np.asarray(mirror.labels) != 0] = -1
    calibration, test = np.split(later, [len(later) // 2])
    return Split(tuple(classes), indices, np.sort(train), np.sort(validation), calibration), test


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted scorer, CPU seconds of its training, and its log loss on validation nodes."""

    name: str
    fitted: FittedNetwork
    seconds: float
    loss: float


def fit_scorers(world: World, mirror: Mirror, split: Split, seed: int) -> dict[str, Fit]:
    """Fit both halves once; the blend and the choice follow from them."""
    used, fits = stop_by_latest(mirror, split), {}
    for name in SCORERS[:2]:
        settings = ModelSettings(network=name, seed=seed)
        project = SimpleNamespace(
            settings=SimpleNamespace(model=settings, network=name), mapping=world.mapping
        )
        seconds, fitted = cpu_seconds(lambda p=project: fit_network(p, mirror, used, None))
        fits[name] = Fit(name, fitted, seconds, validation_log_loss(used, fitted))
    both = sum(fit.seconds for fit in fits.values())
    mean = blend(*(fit.fitted for fit in fits.values()), used)
    fits["blend"] = Fit("blend", mean, both, validation_log_loss(used, mean))
    best = min(fits.values(), key=lambda fit: fit.loss)
    return fits | {"auto": replace(best, seconds=both)}


def measure(world: World, seed: int, place: Path) -> dict[str, dict[str, float | str]]:
    """Return what was measured, by scorer."""
    mirror = fill_mirror(world, place / "mirror")
    split, test = split_by_time(mirror, seed)
    wanted = np.concatenate([split.calibration, test])
    graph = inference_graph(mirror, world.mapping)
    measured: dict[str, dict[str, float | str]] = {}
    for scorer, fit in fit_scorers(world, mirror, split, seed).items():
        facts = {**fit.fitted.manifest_facts(), "classes": list(split.classes)}
        model = SavedModel(scorer, fit.fitted.weights, fit.fitted.inputs.scaling, np.empty(0),
                           facts)  # fmt: skip
        seconds, passed = cpu_seconds(
            lambda m=model, s=scorer: outputs_at(place / s, m, mirror, world.mapping, graph, wanted)
        )
        judged = judge(softmax64(passed.logits), split.class_indices[wanted], len(test))
        measured[scorer] = {
            "took": fit.name, **judged, "training_cpu_s": fit.seconds, "first_pass_cpu_s": seconds,
        }  # fmt: skip
    return measured


def judge(
    chances: np.ndarray[Any, Any], truth: np.ndarray[Any, Any], tested: int
) -> dict[str, float]:
    """Judge the last nodes, the test; those before give thresholds, of all nodes and per class."""
    n, classes = len(truth) - tested, chances.shape[1]
    of_truth = chances[np.arange(len(truth)), truth]
    together = chances[n:] >= threshold_of(of_truth[:n])
    apart = chances[n:] >= [threshold_of(of_truth[:n][truth[:n] == c]) for c in range(classes)]
    late = truth[n:]
    areas = [roc_auc_score(late == c, chances[n:, c]) for c in range(classes)]
    return {
        "log_loss": float(-np.log(np.maximum(of_truth[n:], 1e-12)).mean()),
        "auroc": float(np.mean(areas)),
        "set_size": float(together.sum(axis=1).mean()),
        "coverage": float(together[np.arange(tested), late].mean()),
        "worst_class": worst_class(together, late),
        "class_set_size": float(apart.sum(axis=1).mean()),
        "class_coverage": float(apart[np.arange(tested), late].mean()),
        "class_worst_class": worst_class(apart, late),
    }


def threshold_of(scores: np.ndarray[Any, Any]) -> float:
    """The rank-th lowest calibration probability is kept; with too few nodes everything is."""
    rank = math.floor(ALPHA * (len(scores) + 1))
    return float(np.sort(scores)[rank - 1]) if rank else -math.inf


def worst_class(sets: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> float:
    return min(float(sets[truth == c, c].mean()) for c in np.unique(truth))


def shuffled(world: World, seed: int) -> World:
    """The same world with the ends of its relationships permuted within each type."""
    rng = np.random.default_rng((seed, 17))
    pairs = []
    for each in world.pairs:
        order = rng.permutation(len(each)).tolist()
        pairs.append([(a, each[at][1]) for (a, _), at in zip(each, order, strict=True)])
    return replace(world, pairs=pairs)


def over_seeds(name: str, nodes: int, runs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A row per scorer: means over seeds, and the standard error of the log loss."""
    for scorer in SCORERS:
        of = [run[scorer] for run in runs]
        took = [row["took"] for row in of]
        row: dict[str, Any] = {"graph": name, "nodes": nodes, "scorer": scorer, "seeds": len(of)}
        row["took"] = ", ".join(sorted(set(took))) if scorer == "auto" else None
        for key in (key for key in of[0] if key != "took"):
            row[key] = float(np.mean([each[key] for each in of]))
        losses = np.array([each["log_loss"] for each in of])
        spread = losses.std(ddof=1) / math.sqrt(len(of)) if len(of) > 1 else None
        yield row | {"log_loss_se": None if spread is None else float(spread)}


def rows_of_others(flights_folder: Path | None, faers_folder: Path | None) -> list[dict[str, Any]]:
    """Rows that were measured before, of graphs that are not given now."""
    given = {"flights": flights_folder, "FAERS": faers_folder}
    if not (RESULTS / "scorers.json").exists():
        return []
    return [row for row in kept("scorers")["rows"] if given[row["graph"]] is None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flights", type=Path)
    parser.add_argument("--faers", type=Path)
    parser.add_argument("--nodes", type=int, default=MOST_NODES, help="of each graph, at most")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    most = QUICK_NODES if given.quick else given.nodes
    rows = [] if given.quick else rows_of_others(given.flights, given.faers)
    worlds = {"flights": (given.flights, flight_world), "FAERS": (given.faers, case_world)}
    for name, (folder, make) in worlds.items():
        if folder is None:
            continue
        world, runs = make(folder, most), []
        for seed in given.seeds:
            with tempfile.TemporaryDirectory() as place:
                run = measure(world, seed, Path(place))
            with tempfile.TemporaryDirectory() as place:
                beside = measure(shuffled(world, seed), seed, Path(place))
            for scorer, row in run.items():
                row |= {f"shuffled_{key}": beside[scorer][key] for key in SHUFFLED}
                show({"graph": name, "seed": seed, "scorer": scorer, **row})
            runs.append(run)
        rows += over_seeds(name, len(world.classes), runs)
    keep("scorers", rows, given.quick, seeds=given.seeds)


if __name__ == "__main__":
    main()
