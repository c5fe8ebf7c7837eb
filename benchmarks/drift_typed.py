"""The flights by day with the typed network on their own graph: `drift --flights FOLDER --typed`.

Five labels with raw columns: flights, airports, airlines and hourly weather; planes are left out,
because their absence tells of a cancelled flight. Typed SAGE is trained on a part of January to
March (`TRAINED` flights and all context), or on all of its flights; encoders are fitted on the
same. Every day its outputs are computed anew on the graph of that day, by the kernels of scoring
with kept sums of hubs, at the flights of the last `DAYS_BACK` days and at the first calibration
flights: what a window may hold. Where classes come later than that, the `WINDOW_DAYS` days before
each delay take the place of the last days.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence as List
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from benchmarks.drift_flights import CALIBRATION, FIRST_DAY, RAPS_STRONG, VALIDATION
from benchmarks.drift_replay import Sequence
from ringfence.models.encoders import ColumnChoice, fit_table, infer_kind
from ringfence.models.inference.graph import InferenceGraph
from ringfence.models.inference.several_labels import (
    LayerCache,
    TypedGraph,
    forward_typed,
    typed_graph,
)
from ringfence.models.inference.several_labels.plan import plan_typed
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.schema import Relation, TypedSchema
from ringfence.models.scores import aps, raps, softmax64, tps
from ringfence.models.scores.choice import choose_score
from ringfence.models.training.train import TrainingOptions, TrainingTargets
from ringfence.models.training.train import train as train_network
from ringfence.models.training.typed_data import select_typed

ALPHA = 0.1
TRAINED = 30_000
EVERY_FLIGHT = 1_000_000  # more than January to March have: all that do not calibrate
DAYS_BACK, WINDOW_DAYS = 20, 12
MAX_EPOCHS, PATIENCE, HIDDEN = 150, 15, 32
OWN = ["sched_dep_time", "sched_arr_time", "distance", "time_hour", "carrier", "origin"]
SCHEMA = TypedSchema(
    ("Flight", "Airport", "Airline", "Weather"),
    (
        Relation(0, "FROM", 1),
        Relation(0, "TO", 1),
        Relation(0, "BY", 2),
        Relation(0, "IN", 3),
        Relation(3, "AT", 1),
    ),
)
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FlightGraph:
    """Context rows first, then flights in the order of departure; entries of the whole year."""

    y: Ints
    days: Ints
    first: int  # row of the first flight
    labels: Ints
    tables: list[pd.DataFrame]
    edges: Ints
    node: Ints
    other: NDArray[np.int32]
    code: NDArray[np.uint8]

    def until(self, size: int) -> TypedGraph:
        """The graph of the first rows: a prefix of every list, since later rows come last."""
        here = (self.node < size) & (self.other < size)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(self.node[here], minlength=size))])
        nobody = np.empty(0, np.int64)
        base = InferenceGraph(
            offsets, self.other[here], self.code[here], nobody, np.zeros(1, np.int64),
            np.empty(0, np.int32), np.empty(0, np.uint8), size, np.ones(5, np.bool_),
            np.zeros(size, np.int64), size,
        )  # fmt: skip
        return typed_graph(base, SCHEMA, self.labels[:size])


@dataclass(slots=True)
class TypedNetwork:
    """One trained network: what it was calibrated and encoded with, its outputs by day."""

    calibration: Ints
    plan: Any
    features: list[NDArray[np.float32]]
    u: Floats
    draw: Floats
    first_day: int = FIRST_DAY
    chosen: str = "APS"
    kept: LayerCache = field(default_factory=LayerCache)
    rows: dict[int, Ints] = field(default_factory=dict)
    chances: dict[int, NDArray[np.float32]] = field(default_factory=dict)


def typed_flights(
    folder: Path,
    seed: int,
    days: int = 275,
    trained: int = TRAINED,
    first_day: int = FIRST_DAY,
    delays: List[int] = (),
) -> tuple[FlightGraph, TypedNetwork]:
    """Train a network before the first day; compute its outputs of every day from there on.

    `delays` says how many days late classes will come: after each of them flights can calibrate.
    """
    graph = load(folder)
    network = train(graph, seed, trained, first_day)
    for day in range(first_day, first_day + days):
        now = graph.until(graph.first + int(np.searchsorted(graph.days, day, side="right")))
        wanted = np.union1d(network.calibration, _flights_needed(graph.days, day, delays))
        found = forward_typed(
            network.plan, now, network.features, graph.first + wanted, network.kept
        )
        network.rows[day] = wanted
        network.chances[day] = np.asarray(softmax64(found.logits), np.float32)
    return graph, network


def _flights_needed(days: Ints, day: int, delays: List[int]) -> Ints:
    """The flights that a run scores: those of the day, and those that a window may hold."""
    if not delays:
        return np.flatnonzero((days > day - DAYS_BACK) & (days <= day))
    needed = days == day
    for delay in delays:
        needed |= (days > day - delay - WINDOW_DAYS) & (days <= day - delay)
    return np.flatnonzero(needed)


def typed_sequence(graph: FlightGraph, network: TypedNetwork, delay: int) -> tuple[Sequence, int]:
    """Daily runs with classes `delay` days late, and the first of them."""
    last, first = max(network.rows), network.first_day
    days = graph.days[graph.days <= last]
    before = days < first

    def chances_at(run: int, rows: Ints) -> Floats:
        places = np.searchsorted(network.rows[run], rows)
        assert (network.rows[run][places] == rows).all()
        chances = network.chances[run][places].astype(np.float64)
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def scores_at(score: str, run: int, rows: Ints) -> Floats:
        named = SCORES[network.chosen if score == "auto" else score]
        return named(chances_at(run, rows), network.u[rows])

    return Sequence(
        graph.y[: len(days)], np.where(before, 0, days), np.where(before, 0, days + delay),
        network.calibration, network.draw[: len(days)], last, scores_at, chances_at=chances_at,
    ), first  # fmt: skip


def load(folder: Path) -> FlightGraph:
    """Read the tables; rows and relationships of the whole year."""
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        flights = pd.read_csv(archive.open(archive.namelist()[0]))
    flights["days"] = [
        date(*day).toordinal()
        for day in flights[["year", "month", "day"]].itertuples(index=False, name=None)
    ]
    flights = flights.sort_values(["days", "sched_dep_time"], kind="stable").reset_index(drop=True)
    weather = pd.read_csv(folder / "weather.csv")
    weather["id"] = weather["origin"] + weather["time_hour"]
    weather = weather.drop_duplicates("id")
    flights["weather"] = flights["origin"] + flights["time_hour"]
    delay = flights["arr_delay"].to_numpy(float)
    y = np.where(np.isnan(delay), 3, np.where(delay <= 0, 0, np.where(delay <= 45, 1, 2)))
    context = [(pd.read_csv(folder / "airports.csv"), "faa"),
               (pd.read_csv(folder / "airlines.csv"), "carrier"), (weather, "id")]  # fmt: skip
    labels, row_of, start = [], [], 0
    for label, (frame, key) in enumerate(context, start=1):
        row_of.append(pd.Series(np.arange(start, start + len(frame)), index=frame[key]))
        labels.append(np.full(len(frame), label))
        start += len(frame)
    named = [("origin", 0), ("dest", 0), ("carrier", 1), ("weather", 2)]
    row, edges = start + np.arange(len(flights)), []
    for relation, (column, which) in enumerate(named):
        target = flights[column].map(row_of[which])
        there = target.notna().to_numpy()
        ends = target.to_numpy()[there].astype(np.int64)
        edges.append(np.stack([row[there], ends, np.full(len(ends), relation)]))
    place = weather["origin"].map(row_of[0]).to_numpy().astype(np.int64)
    edges.append(np.stack([row_of[2].to_numpy(), place, np.full(len(place), 4)]))
    source, target, kind = joined = np.concatenate(edges, axis=1)
    node, other = np.concatenate([target, source]), np.concatenate([source, target])
    code = np.concatenate([2 * kind + 1, 2 * kind]).astype(np.uint8)
    order = np.lexsort((code, other, node))
    gone = ["year", "month", "day", "hour", "id", "origin", "time_hour"]
    tables = [flights[OWN], context[0][0].drop(columns=["faa", "name"]),
              context[1][0].drop(columns="carrier"),
              weather.drop(columns=gone)]  # fmt: skip
    return FlightGraph(
        y.astype(np.int64), flights["days"].to_numpy(np.int64), start,
        np.concatenate([*labels, np.zeros(len(flights), np.int64)]), tables, joined,
        node[order], other[order].astype(np.int32), code[order],
    )  # fmt: skip


def train(graph: FlightGraph, seed: int, flights: int, first_day: int) -> TypedNetwork:
    """Train on a part of the days before the first one that is replayed."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(np.flatnonzero(graph.days < first_day))
    calibration = np.sort(shuffled[:CALIBRATION])
    part = shuffled[CALIBRATION : CALIBRATION + flights]
    cut = len(part) * 4 // 5
    features = [_encoded(graph.tables[0], part[:cut])]
    features += [_encoded(table, np.arange(len(table))) for table in graph.tables[1:]]
    starts = [np.flatnonzero(graph.labels == label) for label in range(1, 4)]
    columns = (features[0][part], *features[1:])
    data = select_typed(
        SCHEMA, columns, graph.edges, (graph.first + part, *starts), len(graph.labels)
    )
    widths = [one.shape[1] for one in features]
    network = build_typed("typed_sage", SCHEMA, widths, 4, hidden=HIDDEN, seed=seed)
    targets = TrainingTargets(
        torch.from_numpy(graph.y[part]), torch.arange(cut), torch.arange(cut, len(part))
    )
    options = TrainingOptions(seed=seed, max_epochs=MAX_EPOCHS, patience=PATIENCE)
    trained = train_network(network, data, targets, options)
    network.load_state_dict(trained.state)
    with torch.no_grad():
        logits = network.eval()(*data.tensors()).numpy()[cut:]
    plan = plan_typed(SCHEMA, {name: one.numpy() for name, one in trained.state.items()})
    one = TypedNetwork(
        calibration, plan, features, rng.random(len(graph.y)), rng.random(len(graph.y)), first_day
    )
    held, truth = softmax64(logits[:VALIDATION]), graph.y[part[cut:][:VALIDATION]]
    tried = {
        name: score(held, one.u[part[cut:][:VALIDATION]])
        for name, score in SCORES.items()
        if name != RAPS_STRONG
    }
    choice = choose_score(tried, truth, ALPHA, seed=seed)
    one.chosen = choice.score
    print(
        f"seed {seed}: {trained.epochs} epochs, validation accuracy "
        f"{float((held.argmax(axis=1) == truth).mean()):.3f}; {choice.sentence}",
        flush=True,
    )
    return one


def _aps(chances: Floats, u: Floats) -> Floats:
    return np.asarray(aps(chances, u))


def _raps(chances: Floats, u: Floats) -> Floats:
    return np.asarray(raps(chances, u, penalty=0.01, k_reg=1))


def _raps_strong(chances: Floats, u: Floats) -> Floats:
    return np.asarray(raps(chances, u, penalty=0.05, k_reg=1))


def _tps(chances: Floats, _u: Floats) -> Floats:
    return np.asarray(tps(chances))


SCORES = {"APS": _aps, "RAPS": _raps, "TPS": _tps, RAPS_STRONG: _raps_strong}


def _encoded(table: pd.DataFrame, fitted: Ints) -> NDArray[np.float32]:
    clean = table.astype(object).where(table.notna(), None)
    columns = {str(name): clean[name].tolist() for name in table.columns}
    kinds = {name: infer_kind(values[:5_000]) for name, values in columns.items()}
    choices = {name: ColumnChoice(one.kind) for name, one in kinds.items() if one.usable}
    return fit_table(columns, choices, fitted).transform(columns, len(table))
