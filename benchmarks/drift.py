"""Coverage while the world changes: ways to calibrate side by side.

python -m benchmarks.drift [--quick] [--repetitions N] [--only WORLD ...] [--modes MODE ...]
python -m benchmarks.drift --flights FOLDER [--typed [--every-flight]] [--seeds N | --seed N]

1. A growing graph with message passing (GCN): stationary, gradual, sudden, seasonal change,
   classes known in a selective order (a rare class at once, the others later), and edges in random
   order that bring the nodes, without and with gradual change.
2. With --flights, instead: real flights by day, classes known one and seven days late, with a
   tabular network; with --typed, seven days late alone, typed SAGE on the graph of five labels.
   Seeds may be run one at a time: the table holds every one that was measured.

Every repetition draws graph, split and network anew; ± is one standard error over repetitions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.drift_flights import RAPS_STRONG, flights_scores, flights_sequence
from benchmarks.drift_replay import Floats, Ints, Mode, Sequence, replay
from benchmarks.drift_typed import EVERY_FLIGHT, typed_flights, typed_sequence
from benchmarks.measuring import RESULTS, keep, kept, show
from ringfence.models.conformal.evaluate import degrees
from ringfence.models.networks import GCN
from ringfence.models.sample.drift import DriftingGraph, drifting_graph
from ringfence.models.scores import aps, daps, raps, softmax64
from ringfence.models.training.one_label_data import OneLabelData
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train

ALPHA = 0.1


LIVING = 6.0
"""Calibration nodes in a band of degrees, times alpha, where calibration lives."""


def modes(window: int) -> list[Mode]:
    """Ways to calibrate, APS, without bands: what living sets and levels bring by themselves."""
    return [
        Mode("frozen"),
        Mode("growing", window=None),
        Mode(f"window {window:,}", window),
        Mode("frozen + adapt .05", step=0.05),
        Mode("growing + adapt .05", window=None, step=0.05),
        Mode(f"window {window:,} + adapt .05, one by one", window, step=0.05, cohorts=False),
        Mode(f"window {window:,} + adapt .05", window, step=0.05),
        Mode(f"window {2 * window:,} + adapt .02", 2 * window, step=0.02),
    ]


def banded_modes(window: int) -> list[Mode]:
    """The same within bands of degree, as `rule = "auto"` runs: the default is the last of DAPS.

    The last two are what the flights of a year were best served by, tried elsewhere.
    """
    rows = []
    for score in ("APS", "DAPS"):
        living = f"bands, window {window:,} + adapt .05"
        rows += [
            Mode(f"bands, frozen, {score}", bands=3.0, score=score),
            Mode(
                f"{living}, one by one, {score}", window, 0.05, cohorts=False, bands=LIVING,
                score=score,
            ),
            Mode(f"{living}, bands of 3 / alpha, {score}", window, 0.05, bands=3.0, score=score),
            Mode(f"{living}, {score}", window, 0.05, bands=LIVING, score=score),
        ]  # fmt: skip
    faster = f"bands, window {window:,} + adapt .08"
    return [
        *rows,
        Mode(f"{faster}, APS", window, 0.08, bands=LIVING),
        Mode(f"{faster}, {RAPS_STRONG}", window, 0.08, bands=LIVING, score=RAPS_STRONG),
    ]


def flight_modes() -> list[Mode]:
    """Ways to calibrate the flights: defaults, and the score that `score = "auto"` takes.

    Nothing grows: a quarter of a million calibration nodes would be ranked for every day.
    """
    chosen = [
        Mode("window 5,000 + adapt .05, score auto", 5_000, 0.05, score="auto"),
        Mode("window 10,000 + adapt .02, score auto", 10_000, 0.02, score="auto"),
        Mode(f"window 5,000 + adapt .08, {RAPS_STRONG}", 5_000, 0.08, score=RAPS_STRONG),
    ]
    return [*(mode for mode in modes(5_000) if mode.window is not None), *chosen]


def graph_sequence(graph: DriftingGraph, seed: int) -> Sequence:
    """Train a GCN on two thirds of the nodes that are there at the start; replay by full passes."""
    rng = np.random.default_rng(seed)
    start = rng.permutation(graph.size_at(0))
    third = len(start) // 3
    calibration, rest = np.sort(start[:third]), start[third:]
    cut = len(rest) * 3 // 4
    place = np.full(len(graph.y), -1)
    place[rest] = np.arange(len(rest))
    inner = place[graph.edges]
    edges = torch.from_numpy(_both_ways(inner[:, (inner >= 0).all(axis=0)]))
    x = torch.from_numpy(graph.x.astype(np.float32))
    network = GCN(graph.x.shape[1], int(graph.y.max()) + 1, hidden=32)
    trained = train(
        network,
        OneLabelData(x[rest], edges),
        TrainingTargets(
            torch.from_numpy(graph.y[rest]), torch.arange(cut), torch.arange(cut, len(rest))
        ),
        TrainingOptions(seed=seed, max_epochs=150, patience=20),
    )
    network.load_state_dict(trained.state)
    network.eval()
    u, runs = rng.random(len(graph.y)), int(graph.arrives.max())
    chances = [_chances(network, x, graph, run) for run in range(runs + 1)]
    scores = [_scores(chances[run], graph, run, u) for run in range(runs + 1)]
    return Sequence(
        graph.y, graph.arrives, graph.known, calibration, rng.random(len(graph.y)), runs,
        lambda score, run, rows: scores[run][score][rows],
        lambda run: degrees(graph.edges_at(run), graph.size_at(run)),
        lambda run, rows: chances[run][rows],
    )  # fmt: skip


def _chances(network: Any, x: torch.Tensor, graph: DriftingGraph, run: int) -> Floats:
    """The network's probabilities of all nodes there on the graph of a run."""
    size, edges = graph.size_at(run), _both_ways(graph.edges_at(run))
    with torch.no_grad():
        return np.asarray(softmax64(network(x[:size], torch.from_numpy(edges))))


def _scores(probabilities: Floats, graph: DriftingGraph, run: int, u: Any) -> Any:
    """APS, DAPS and RAPS of all nodes there on the graph of a run."""
    size, edges = graph.size_at(run), _both_ways(graph.edges_at(run))
    own = np.asarray(aps(probabilities, u[:size]))
    return {
        "APS": own,
        "DAPS": np.asarray(daps(own, edges, diffusion=0.5)),
        RAPS_STRONG: np.asarray(raps(probabilities, u[:size], penalty=0.05, k_reg=1)),
    }


def _both_ways(edges: Ints) -> Ints:
    return np.concatenate([edges, edges[::-1]], axis=1)


def selective(rng: np.random.Generator) -> DriftingGraph:
    """A rare class is known at the next run, the others four runs later."""
    graph = drifting_graph(rng, "none", rare=0.1, known_share=1.0)
    late = np.where(graph.y == int(graph.y.max()), 1, 5)
    known = np.where(graph.arrives == 0, 0, graph.arrives + late)
    return DriftingGraph(graph.x, graph.y, graph.edges, graph.arrives, known)


def worlds() -> dict[str, Callable[[np.random.Generator], DriftingGraph]]:
    def draw(kind: Any) -> Callable[[np.random.Generator], DriftingGraph]:
        return lambda rng: drifting_graph(rng, kind)

    kinds = {"stationary": "none", **{k: k for k in ("gradual", "sudden", "seasonal")}}
    return {
        **{name: draw(kind) for name, kind in kinds.items()},
        "selective labels": selective,
        "edges in random order": lambda rng: drifting_graph(rng, "none", edge_order=True),
        "edges in random order, gradual": lambda rng: drifting_graph(
            rng, "gradual", edge_order=True
        ),
    }


def measure(
    name: str, sequences: list[tuple[Sequence, int]], ways: list[Mode], block: int
) -> list[dict[str, Any]]:
    rows = []
    for mode in ways:
        done = [replay(one, mode, ALPHA, first).summary(block) for one, first in sequences]
        row: dict[str, Any] = {"world": name, "mode": mode.name, "repetitions": len(done)}
        for key in done[0]:
            values = np.array([one[key] for one in done])
            row[key] = float(values.mean())
            row[f"{key}_se"] = (
                float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
            )
        rows.append(row)
        show(
            {k: v for k, v in row.items() if not k.endswith("_se")}
            | {"se": row["covered_se"] or 0.0}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--flights", type=Path)
    parser.add_argument("--typed", action="store_true")
    parser.add_argument("--repetitions", type=int, default=13)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, help="with --flights: this seed alone")
    parser.add_argument(
        "--every-flight", action="store_true", help="with --typed: train on all of January to March"
    )
    parser.add_argument("--only", nargs="+", help="names of worlds")
    parser.add_argument("--modes", nargs="+", help="names of modes; their rows join the table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    repetitions = 2 if options.quick else options.repetitions
    some = [options.seed] if options.seed is not None else list(range(options.seeds))
    some = some[:2] if options.quick else some
    if options.flights and options.typed:
        measure_typed(options.flights, some, options.quick, options.every_flight)
        return
    if options.flights:
        measure_flights(options.flights, some, options.quick)
        return
    rows = []
    chosen = {k: w for k, w in worlds().items() if not options.only or k in options.only}
    for name, draw in chosen.items():
        graphs = [(draw(np.random.default_rng([7, i])), i) for i in range(repetitions)]
        sequences = [(graph_sequence(g, i), 1) for g, i in graphs]
        ways = [*modes(500), *banded_modes(500)]
        some = [mode for mode in ways if not options.modes or mode.name in options.modes]
        rows += measure(name, sequences, some, block=4)
    if options.modes and not options.quick:
        rows = merged(rows, kept("drift")["rows"])
    keep("drift", rows, options.quick or bool(options.only), alpha=ALPHA)


def merged(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add rows of some modes to those kept: every repetition has the same graph and network."""
    measured = {(row["world"], row["mode"]) for row in new}
    rows = [row for row in old if (row["world"], row["mode"]) not in measured] + new
    places = list(dict.fromkeys(row["world"] for row in rows))
    order = [mode.name for mode in [*modes(500), *banded_modes(500)]]
    return sorted(rows, key=lambda row: (places.index(row["world"]), order.index(row["mode"])))


def measure_flights(folder: Path, seeds: list[int], quick: bool) -> None:
    """Measure the flights with tabular networks of several seeds."""
    for seed in seeds:
        network, done = flights_scores(folder, seed), {}
        for delay in (1, 7):
            sequence, first = flights_sequence(network, delay)
            done[f"{delay} days late"] = summaries(sequence, first, flight_modes(), seed)
        keep_seed("drift_flights", "world", seed, done, quick)


def typed_modes() -> list[Mode]:
    """Ways to calibrate the flights on their graph; the third is as new models run."""
    return [
        Mode("frozen"),
        Mode("window 5,000", 5_000),
        Mode("window 5,000 + adapt .05", 5_000, 0.05),
        Mode("window 5,000 + adapt .05, score auto", 5_000, 0.05, score="auto"),
        Mode("window 5,000 + adapt .02", 5_000, 0.02),
        Mode("window 2,500 + adapt .05", 2_500, 0.05),
        Mode("window 3,500 + adapt .05", 3_500, 0.05),
        Mode("window 3,500 + adapt .05, score auto", 3_500, 0.05, score="auto"),
        Mode("window 10,000 + adapt .05", 10_000, 0.05),
        Mode("window 10,000 + adapt .02", 10_000, 0.02),
        Mode("window 10,000 + adapt .02, score auto", 10_000, 0.02, score="auto"),
        Mode("window 5,000 + adapt .08", 5_000, 0.08),
        Mode("window 5,000 + adapt .12", 5_000, 0.12),
        Mode(f"window 5,000 + adapt .05, {RAPS_STRONG}", 5_000, 0.05, score=RAPS_STRONG),
        Mode(f"window 5,000 + adapt .08, {RAPS_STRONG}", 5_000, 0.08, score=RAPS_STRONG),
        Mode(f"window 7,000 + adapt .08, {RAPS_STRONG}", 7_000, 0.08, score=RAPS_STRONG),
    ]


def measure_typed(folder: Path, seeds: list[int], quick: bool, every: bool = False) -> None:
    """Measure the flights with typed networks, classes seven days late."""
    part = {"days": 42, "trained": 5_000} if quick else {"trained": EVERY_FLIGHT} if every else {}
    for seed in seeds:
        graph, network = typed_flights(folder, seed, **part)
        sequence, first = typed_sequence(graph, network, 7)
        done = summaries(sequence, first, typed_modes(), seed)
        keep_seed("drift_typed", "trained", seed, {"all" if every else "30,000": done}, quick)


def summaries(
    sequence: Sequence, first: int, ways: list[Mode], seed: int
) -> dict[str, dict[str, float]]:
    """Replay one network's days in every way, by week."""
    done = {}
    for mode in ways:
        done[mode.name] = replay(sequence, mode, ALPHA, first).summary(7)
        show({"seed": seed, "mode": mode.name, **done[mode.name]})
    return done


def keep_seed(name: str, key: str, seed: int, done: dict[str, Any], quick: bool) -> None:
    """Add one network to the table, which holds every seed that was measured so far."""
    store = RESULTS / (f"{name}.seeds.quick.json" if quick else f"{name}.seeds.json")
    found: dict[str, dict[str, Any]] = (
        json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    )
    for world, rows in done.items():
        found.setdefault(world, {})[str(seed)] = rows
    store.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    rows = [
        {key: world, **averaged(mode, [one[mode] for one in of.values()])}
        for world, of in found.items()
        for mode in next(iter(of.values()))
    ]
    keep(name, rows, quick, alpha=ALPHA)


def averaged(mode: str, done: list[dict[str, float]]) -> dict[str, Any]:
    """Means over seeds with one standard error."""
    row: dict[str, Any] = {"mode": mode, "repetitions": len(done)}
    for key in done[0]:
        values = np.array([one[key] for one in done])
        row[key] = float(values.mean())
        row[f"{key}_se"] = (
            float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
        )
    return row


if __name__ == "__main__":
    main()
