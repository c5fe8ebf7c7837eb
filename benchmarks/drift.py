"""Coverage while the world changes: ways to calibrate side by side.

python -m benchmarks.drift [--quick] [--flights FOLDER [--typed]] [--repetitions N] [--seeds N]

1. A growing graph with message passing (GCN): stationary, gradual, sudden, seasonal change,
   classes known in a selective order (a rare class at once, the others later), and edges in random
   order that bring the nodes, without and with gradual change.
2. With --flights, instead: real flights by day, classes known one and seven days late, with a
   tabular network; with --typed, seven days late alone, typed SAGE on the graph of five labels.

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

from benchmarks.drift_flights import flights_scores, flights_sequence
from benchmarks.drift_replay import Ints, Mode, Sequence, replay
from benchmarks.drift_typed import typed_flights, typed_sequence
from benchmarks.measuring import RESULTS, keep, show
from ringfence.models.conformal.evaluate import degrees
from ringfence.models.networks import GCN
from ringfence.models.sample.drift import DriftingGraph, drifting_graph
from ringfence.models.scores import aps, daps, softmax64
from ringfence.models.training.full_batch import train

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
    """The same within bands of degree, as `rule = "auto"` runs: the default is the last."""
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
    return rows


def flight_modes() -> list[Mode]:
    """Ways to calibrate the flights: defaults, and the score that `score = "auto"` takes."""
    chosen = [
        Mode("window 5,000 + adapt .05, score auto", 5_000, 0.05, score="auto"),
        Mode("window 10,000 + adapt .02, score auto", 10_000, 0.02, score="auto"),
    ]
    return [*modes(5_000), *chosen]


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
        network, x[rest], edges, torch.from_numpy(graph.y[rest]), torch.arange(cut),
        torch.arange(cut, len(rest)), seed=seed, max_epochs=150, patience=20,
    )  # fmt: skip
    network.load_state_dict(trained.state)
    network.eval()
    u, runs = rng.random(len(graph.y)), int(graph.arrives.max())
    scores = [_scores(network, x, graph, run, u) for run in range(runs + 1)]
    return Sequence(
        graph.y, graph.arrives, graph.known, calibration, rng.random(len(graph.y)), runs,
        lambda score, run, rows: scores[run][score][rows],
        lambda run: degrees(graph.edges_at(run), graph.size_at(run)),
    )  # fmt: skip


def _scores(network: Any, x: torch.Tensor, graph: DriftingGraph, run: int, u: Any) -> Any:
    """APS and DAPS of all nodes there on the graph of a run."""
    size, edges = graph.size_at(run), _both_ways(graph.edges_at(run))
    with torch.no_grad():
        probabilities = softmax64(network(x[:size], torch.from_numpy(edges)))
    own = np.asarray(aps(probabilities, u[:size]))
    return {"APS": own, "DAPS": np.asarray(daps(own, edges, diffusion=0.5))}


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
    parser.add_argument("--seed", type=int, help="with --typed: this seed alone")
    parser.add_argument("--only", nargs="+", help="names of worlds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    repetitions = 2 if options.quick else options.repetitions
    if options.flights and options.typed:
        some = [options.seed] if options.seed is not None else list(range(options.seeds))
        measure_typed(options.flights, some[:2] if options.quick else some, options.quick)
        return
    if options.flights:
        measure_flights(options.flights, 2 if options.quick else options.seeds, options.quick)
        return
    rows = []
    chosen = {k: w for k, w in worlds().items() if not options.only or k in options.only}
    for name, draw in chosen.items():
        graphs = [(draw(np.random.default_rng([7, i])), i) for i in range(repetitions)]
        sequences = [(graph_sequence(g, i), 1) for g, i in graphs]
        rows += measure(name, sequences, [*modes(500), *banded_modes(500)], block=4)
    keep("drift", rows, options.quick or bool(options.only), alpha=ALPHA)


def measure_flights(folder: Path, seeds: int, quick: bool) -> None:
    """Measure the flights with networks of several seeds."""
    rows = []
    networks = [flights_scores(folder, seed) for seed in range(seeds)]
    for delay in (1, 7):
        sequences = [flights_sequence(one, delay) for one in networks]
        rows += measure(f"flights, {delay} days late", sequences, flight_modes(), block=7)
    keep("drift_flights", rows, quick, alpha=ALPHA)


def typed_modes() -> list[Mode]:
    """Ways to calibrate the flights on their graph; the third is as new models run."""
    return [
        Mode("frozen"),
        Mode("window 5,000", 5_000),
        Mode("window 5,000 + adapt .05", 5_000, 0.05),
        Mode("window 5,000 + adapt .05, score auto", 5_000, 0.05, score="auto"),
        Mode("window 5,000 + adapt .02", 5_000, 0.02),
        Mode("window 10,000 + adapt .05", 10_000, 0.05),
        Mode("window 10,000 + adapt .02", 10_000, 0.02),
        Mode("window 10,000 + adapt .02, score auto", 10_000, 0.02, score="auto"),
    ]


def measure_typed(folder: Path, seeds: list[int], quick: bool) -> None:
    """Measure the flights with typed networks, classes seven days late.

    The table holds every seed that was measured so far: seeds may be run one at a time.
    """
    part = {"days": 42, "trained": 5_000} if quick else {}
    found: dict[str, dict[str, dict[str, float]]] = {}
    store = RESULTS / "drift_typed.seeds.json"
    if store.exists() and not quick:
        found = json.loads(store.read_text(encoding="utf-8"))
    for seed in seeds:
        graph, network = typed_flights(folder, seed, **part)
        sequence, first = typed_sequence(graph, network, 7)
        found[str(seed)] = {
            mode.name: replay(sequence, mode, ALPHA, first).summary(7) for mode in typed_modes()
        }
        for name, row in found[str(seed)].items():
            show({"seed": seed, "mode": name, **row})
    if not quick:
        store.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    rows = [averaged(mode.name, [one[mode.name] for one in found.values()])
            for mode in typed_modes()]  # fmt: skip
    keep("drift_typed", rows, quick, alpha=ALPHA)


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
